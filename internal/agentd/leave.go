package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/enrol"
)

// stopTime is how long Leave waits for processes that it stops.
const stopTime = 5 * time.Minute

// systemdRuns is a folder that exists where systemd manages the machine.
const systemdRuns = "/run/systemd/system"

// units are the units of agents, and where a person or the join script puts them. A package has its own place.
var units = []string{"gozzard-agent.service", "gozzard-agent-cap.service", "gozzard-agent-user.service"}

const unitFolder = "/etc/systemd/system"

// LeaveOptions are the settings of `gozzard agent leave`.
type LeaveOptions struct {
	Data    string
	Policy  PolicyOptions
	Stop    bool // stop the processes; false: they keep running
	Offline bool // do not ask the server
	Version string
	Log     *slog.Logger
}

// Left is what Leave did.
type Left struct {
	Agent     gozzard.AgentID // "": the folder had no identity
	Server    string          // that has removed the host; "": none was asked
	Processes int             // that were stopped, or that keep running
	Units     []string        // that were removed
}

// Leave takes this host out of its fleet: it stops the agent, stops the processes or leaves them running, has the
// server remove the host, and deletes the state folder and the unit. When a step fails, the later ones are not done, and
// the same command continues.
func Leave(ctx context.Context, o LeaveOptions) (left Left, err error) {
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return left, fmt.Errorf("cannot find the state folder: %w", err)
	}
	member, err := enrol.LoadMembership(o.Data)
	switch {
	case err == nil:
		left.Agent = member.Agent
	case !errors.Is(err, fs.ErrNotExist):
		return left, err
	case !exists(filepath.Join(o.Data, "agent-id")):
		return left, fmt.Errorf("%s is not the state folder of an agent: give it with --data", o.Data)
	}

	// Stop the agent.
	system := strings.HasPrefix(o.Data, systemState) && exists(systemdRuns)
	if system {
		for _, unit := range units {
			// A unit that does not exist is not there to be stopped.
			_ = exec.CommandContext(ctx, "systemctl", "--quiet", "disable", "--now", unit).Run()
		}
	}

	// Stop the processes. This fails while an agent uses the folder.
	if left.Processes, err = o.endProcesses(ctx, member); err != nil {
		return left, err
	}

	// Have the server remove the host.
	if member != nil && !o.Offline {
		if err := enrol.Leave(ctx, member, enrol.Machine()); err != nil {
			return left, fmt.Errorf("%w. The state folder stays. If the server is gone, or an admin has removed this host "+
				"with gozzard hosts remove %s, run this again with --offline", err, member.Agent)
		}
		left.Server = member.Server
	}

	// Remove the state and the unit.
	if err := os.RemoveAll(o.Data); err != nil {
		return left, fmt.Errorf("cannot remove the state folder: %w", err)
	}
	if system {
		left.Units, err = removeUnits(ctx)
	}
	return left, err
}

// endProcesses opens the state folder as the agent would, and stops its processes if that was chosen. It returns their
// number.
func (o LeaveOptions) endProcesses(ctx context.Context, member *enrol.Membership) (n int, err error) {
	// Open the parts of an agent, without a way to the server.
	a := &Agent{options: Options{Data: o.Data, Version: o.Version, Member: member, Policy: o.Policy, Log: o.Log,
		Fatal: func(error) {}}}
	defer a.Close()
	for _, open := range []func() error{a.openState, a.openPolicy, a.openHost, a.openAgent} {
		if err := open(); err != nil {
			return 0, err
		}
	}

	// Run it.
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	n = a.agent.Processes()
	ended := make(chan error, 1)
	go func() { ended <- a.agent.Run(ctx, noLink{}) }()

	// Stop the processes, then the agent.
	var running map[gozzard.Key]string
	if o.Stop {
		running = a.agent.StopAll(ctx)
	}
	cancel()
	if err := <-ended; err != nil {
		return n, err
	}
	if len(running) == 0 {
		return n, nil
	}

	texts := make([]string, 0, len(running))
	for key, why := range running {
		texts = append(texts, fmt.Sprintf("%s in namespace %s (%s)", key.Name, key.Namespace, why))
	}
	slices.Sort(texts)
	return n, fmt.Errorf("%d processes still run, so nothing was removed: %s. Stop them yourself, or run this again with "+
		"--keep", len(running), strings.Join(texts, "; "))
}

// noLink is the way to the server of an agent that has none.
type noLink struct{}

var _ agent.Link = noLink{}

// Send implements agent.Link.
func (noLink) Send(*gozzard.Report) error { return errors.New("this agent has no server") }

// removeUnits removes the units that no package has installed.
func removeUnits(ctx context.Context) (removed []string, err error) {
	for _, unit := range units {
		path := filepath.Join(unitFolder, unit)
		switch err := os.Remove(path); {
		case err == nil:
			removed = append(removed, path)
		case !errors.Is(err, fs.ErrNotExist):
			return removed, fmt.Errorf("cannot remove the unit: %w", err)
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if out, err := exec.CommandContext(ctx, "systemctl", "daemon-reload").CombinedOutput(); err != nil {
		return removed, fmt.Errorf("cannot reload systemd: %w: %s", err, out)
	}
	return removed, nil
}
