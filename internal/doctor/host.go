package doctor

import (
	"context"
	"errors"
	"fmt"
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
	Data     string  // the state folder
	Policy   string  // "": the one that an agent with this state folder finds
	Socket   string  // of the agent; "": it has none
	Settings string  // the file with the settings of the agent; "": there is none
	Invalid  []error // why an agent does not start with these settings
	Version  string  // of this program
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

	all := append(examine(o.Data, own), checkAgent(o.Data, o.Socket)...)
	all = append(all, checkProgram(o.Version))
	all = append(all, checkSettings(o.Settings, o.Invalid)...)
	all = append(all, checkPolicy(o.Data, o.Policy, own))
	if f := checkUpdates(o.Data, o.Policy); f.Text != all[len(all)-1].Text { // a fault of the policy is said once
		all = append(all, f)
	}
	return all, nil
}

// checkSettings says whether an agent starts with its settings.
func checkSettings(file string, faults []error) (all []Finding) {
	for _, fault := range faults {
		all = append(all, Finding{Fail, "settings", fault.Error() +
			" (an agent does not start with it; one that runs keeps its settings)"})
	}
	if len(all) == 0 && file != "" {
		all = append(all, Finding{OK, "settings", file})
	}
	return all
}

// checkAgent checks the identity in a state folder, and whether its agent runs, is connected and can record.
func checkAgent(data, socket string) (all []Finding) {
	if err := agentd.CheckIdentity(data); err != nil {
		all = append(all, Finding{Fail, "identity", err.Error()})
	}
	ctx, cancel := context.WithTimeout(context.Background(), askAgent)
	defer cancel()

	f := agentd.FindAgent(ctx, data, socket)
	switch {
	case f.Status != nil:
		if fault := f.Status.Journal.Fault; fault != "" {
			return append(all, Finding{Fail, "agent",
				"the agent that runs here cannot write its state folder (" + fault + "): it supervises and stops processes, but " +
					"rejects everything else that it cannot record. Make the folder writable; do not restart the agent before"})
		}
		return append(all, checkLink(f))
	case f.Err != nil:
		return append(all, Finding{Warn, "agent", "the agent that runs here does not answer: " + f.Err.Error()})
	case f.PID != "":
		return append(all, Finding{Warn, "agent",
			fmt.Sprintf("the agent with pid %s runs without a socket at %s: its log says why", f.PID, socket)})
	case !f.Expect:
		return append(all, Finding{OK, "agent", "no agent has run here yet"})
	}

	if unit := agentd.UnitOf(ctx, data); unit != "" {
		return append(all, Finding{Fail, "agent",
			fmt.Sprintf("it does not run; to see why: systemctl status %s and journalctl -u %s", unit, unit)})
	}
	return append(all, Finding{Fail, "agent", "it does not run; to start it: gozzard agent --data " + data})
}

// checkLink says whether an agent that runs is connected.
func checkLink(f agentd.Found) Finding {
	st := f.Status
	switch {
	case st.Session.Open:
		return Finding{OK, "agent", fmt.Sprintf("runs with pid %d, connected to %s", st.PID, st.Server)}
	case st.Link.Fault != "":
		return Finding{Warn, "agent", fmt.Sprintf("runs with pid %d, not connected to %s: %s", st.PID, st.Server, st.Link.Fault)}
	case st.Session.Fault != "":
		return Finding{Warn, "agent", fmt.Sprintf("runs with pid %d, rejects the server %s: %s", st.PID, st.Server, st.Session.Fault)}
	}
	return Finding{Warn, "agent", fmt.Sprintf("runs with pid %d, has no session with %s yet", st.PID, st.Server)}
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
