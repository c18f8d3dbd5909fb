package agentd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// InstallOptions are the settings of `gozzard agent update --from FOLDER`.
type InstallOptions struct {
	Data   string // the state folder of the agent
	From   string // the folder of the release
	Again  bool   // also a version that was rolled back here
	Policy PolicyOptions
	Log    *slog.Logger
}

// Installed is what Install did.
type Installed struct {
	Version  string // that is in place now
	Previous string
	Program  string // the file
	Running  bool   // an agent runs from it and was asked to hand over
}

// Install puts a release in the place of the agent's program and asks the agent to hand over.
func Install(ctx context.Context, o InstallOptions) (in Installed, err error) {
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return in, fmt.Errorf("cannot find the state folder: %w", err)
	}

	// Find the program of the agent.
	state, err := o.trustedState()
	if err != nil {
		return in, err
	}
	in.Program = state.Program
	if in.Program == "" { // no agent has run from this folder yet
		if in.Program, err = os.Executable(); err != nil {
			return in, fmt.Errorf("cannot find this program's file: %w", err)
		}
	}

	// Reject a program that other accounts can replace, and learn its version.
	if err := TrustProgram(in.Program); err != nil {
		return in, fmt.Errorf("cannot trust the agent's program: %w", err)
	}
	if in.Previous, err = selfupdate.SaysVersion(ctx, in.Program); err != nil {
		return in, fmt.Errorf("cannot ask %s for its version: %w", in.Program, err)
	}

	// Install the release. The agent is found before: afterwards it runs from a file that is gone.
	agent := findAgent(state.PID, in.Program, o.Data)
	up := o.Policy.updater(o.Data, in.Program, in.Previous, 0, nil, o.Log)
	in.Version, err = up.Install(ctx, selfupdate.Folder(o.From), selfupdate.Request{Again: o.Again})
	if err != nil || agent == nil {
		return in, err
	}

	// Ask the agent to hand over.
	if err := requestHandOver(agent); err != nil {
		return in, fmt.Errorf("release %s is in place, but the agent could not be asked to hand over "+
			"(send it SIGUSR2): %w", in.Version, err)
	}
	in.Running = true
	return in, nil
}

// trustedState reads the state of updates of a folder that no other account can write.
func (o *InstallOptions) trustedState() (selfupdate.State, error) {
	own, err := host.OwnPrivileges()
	if err != nil {
		return selfupdate.State{}, err
	}
	if err := policy.TrustState(own.Mode).Check(o.Data); err != nil {
		return selfupdate.State{}, fmt.Errorf("cannot use the state folder: %w", err)
	}
	if _, err := os.Stat(o.Data); err != nil {
		return selfupdate.State{}, fmt.Errorf("cannot find the state folder: %w", err)
	}
	return selfupdate.ReadState(o.Data)
}
