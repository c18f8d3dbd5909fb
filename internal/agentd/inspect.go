package agentd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/agentsock"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/journal"
)

// LocalState is the state folder for a command on this host whose caller names none: the default if it exists, else the
// one of the units as shipped if that exists.
func LocalState(data string) string { return localState(data, unitState) }

func localState(data, installed string) string {
	if _, err := os.Lstat(data); err != nil && exists(installed) { // also where this account may not look
		return installed
	}
	return data
}

// SettingsFile is the file of settings that the units as shipped give to the agent of a state folder; "" if there is none.
func SettingsFile(data string) string {
	file := filepath.Join(systemFolder, "agent.yaml")
	if data, err := filepath.Abs(data); err != nil || data != unitState || !exists(file) {
		return ""
	}
	return file
}

// UnitOf is the unit of the agent of a state folder: the one that runs, else the one that is enabled, else the one that
// fits. "" if there is none.
func UnitOf(ctx context.Context, data string) string {
	data, err := filepath.Abs(data)
	if err != nil {
		return ""
	}
	u := findUnits(ctx, data)
	for _, names := range [][]string{u.running, u.enabled} {
		if len(names) > 0 {
			return trimUnit(names[0])
		}
	}
	unit, _ := StartUnit(ctx, data)
	return unit
}

// Check says what is wrong with the settings of an agent, as its start would. Nothing is made, and nothing listens.
func (o *ServeOptions) Check() []error {
	a := &Agent{options: o.Options}
	defer a.Close()
	_, addrErr := hostAddrs(o.Options)
	var secretErr error
	if o.JoinFile != "" {
		_, _, secretErr = ReadJoinFile(o.JoinFile)
	}
	return []error{addrErr, a.openListener(), a.openCollector(), secretErr}
}

// CheckIdentity returns why an agent could not use the identity in a state folder. A folder without one is good.
func CheckIdentity(data string) error {
	_, err := agent.Identity(data)
	return err
}

// Found is the agent of a state folder, as far as this host shows it.
type Found struct {
	Status *agentsock.Status // what it answers; nil: it does not
	Err    error             // why it does not answer, if it runs
	PID    string            // of a process that uses the folder without an answer; "": there is none
	Expect bool              // an agent has run on the folder, or the host has joined: one should run
}

// FindAgent looks for the agent of a state folder, at its socket and at the lock of the folder. No path: it has no socket.
func FindAgent(ctx context.Context, data, socket string) (f Found) {
	if agentsock.Supported && socket != "" {
		st, err := agentsock.NewClient(socket).Status(ctx)
		if err == nil {
			return Found{Status: &st}
		}
		if !errors.Is(err, agentsock.ErrNotRunning) {
			f.Err = err
		}
	}

	f.PID = journal.Holder(data)
	version, _ := journal.Version(data)
	_, err := enrol.LoadMembership(data)
	f.Expect = version > 0 || err == nil
	return f
}
