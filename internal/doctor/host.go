package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agentd"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/internal/selfupdate"
)

// askAgent is how long a running agent may take to answer.
const askAgent = 5 * time.Second

// HostOptions say which agent a host is checked for.
type HostOptions struct {
	Data    string // the state folder
	Policy  string // "": the one that an agent with this state folder finds
	Version string // of this program
}

// Host checks this host for an agent that runs as the present account.
func Host(o HostOptions) ([]Finding, error) {
	// Make the paths absolute: a policy is read along its whole path, from the root folder on.
	var err error
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return nil, err
	}
	if o.Policy != "" {
		if o.Policy, err = filepath.Abs(o.Policy); err != nil {
			return nil, err
		}
	}

	own, err := host.OwnPrivileges()
	if err != nil {
		return nil, err
	}

	all := append(examine(o.Data, own), checkAgent(o.Data)...)
	return append(all, checkProgram(o.Version), checkPolicy(o.Data, o.Policy, own),
		checkUpdates(o.Data, o.Policy)), nil
}

// checkAgent checks the identity in a state folder, and asks the agent that runs there whether it can record.
func checkAgent(data string) (all []Finding) {
	if err := agentd.CheckIdentity(data); err != nil {
		all = append(all, Finding{Fail, "identity", err.Error()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), askAgent)
	defer cancel()
	switch fault, err := agentd.RunningFault(ctx, data); {
	case err != nil:
		all = append(all, Finding{Warn, "agent", "the agent that runs here does not answer: " + err.Error()})
	case fault != "":
		all = append(all, Finding{Fail, "agent",
			"the agent that runs here cannot write its state folder (" + fault + "): it supervises and stops processes, but " +
				"rejects everything else that it cannot record. Make the folder writable; do not restart the agent before"})
	}
	return all
}

// checkProgram says whether an agent would start from the file of this program.
func checkProgram(version string) Finding {
	file, err := os.Executable()
	if err == nil {
		err = agentd.TrustProgram(file)
	}
	if err != nil {
		return Finding{Fail, "program", err.Error()}
	}
	return Finding{OK, "program", file + " " + version}
}

// checkPolicy describes the policy of a state folder.
func checkPolicy(data, file string, own host.Privileges) Finding {
	if file == "" && own.Mode == gozzard.ModeCap && own.UID != 0 {
		return Finding{Fail, "policy", "none is named with --policy: " + agentd.NeedsRootPolicy}
	}
	path, err := agentd.PolicyOptions{File: file}.Find(data, own)
	if err != nil {
		return Finding{Fail, "policy", err.Error()}
	}

	p, err := policy.Load(path, policy.TrustBounds(own.Mode))
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == "":
		return Finding{OK, "policy", path + " will be made: root refused unless the agent is started with --allow-root"}
	case err != nil:
		return Finding{Fail, "policy", err.Error()}
	}

	if why := agentd.Unguarded(path, data, p, own); why != "" {
		return Finding{Warn, "policy", path + ": " + p.String() + ". But " + why}
	}
	return Finding{OK, "policy", path + ": " + p.String()}
}

// checkUpdates says whether releases can replace the agent of a state folder.
func checkUpdates(data, policyFile string) Finding {
	_, err := agentd.PolicyOptions{File: policyFile}.ReleaseKey(data)
	s, stateErr := selfupdate.ReadState(data)
	switch {
	case errors.Is(err, agentd.ErrNoReleaseKey):
		return Finding{OK, "updates", err.Error()}
	case err != nil:
		return Finding{Fail, "updates", err.Error()}
	case stateErr != nil:
		return Finding{Fail, "updates", stateErr.Error()}
	case s.Trial != nil:
		return Finding{Warn, "updates",
			"release " + s.Trial.Version + " is on trial until the server accepts its connection"}
	}

	return Finding{OK, "updates", "to newer releases that the release key of this host has signed"}
}
