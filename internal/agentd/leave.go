package agentd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/host"
)

// stopTime is how long Leave waits for processes that it stops.
const stopTime = 5 * time.Minute

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
	Agent     gozzard.AgentID `json:"agent"`     // "": the folder had no identity
	Server    string          `json:"server"`    // that has removed the host; "": none was asked
	Processes int             `json:"processes"` // that were stopped, or that keep running
	Units     []string        `json:"-"`         // that were removed
}

// Leave takes this host out of its fleet: it stops the agent, stops the processes or leaves them running, has the
// server remove the host, and deletes the state folder and the unit. What can be checked is checked before anything is
// changed. When a step fails, the later ones are not done, the unit of the agent runs again, and the same command
// continues.
func Leave(ctx context.Context, o LeaveOptions) (left Left, err error) {
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return left, fmt.Errorf("cannot find the state folder: %w", err)
	}
	member, err := o.member()
	if err != nil {
		return left, err
	}

	// Check what can be checked.
	account, err := o.check(ctx, member)
	if err != nil {
		return left, err
	}

	// Stop the agent. If something fails from here on, it runs again.
	units := findUnits(ctx, o.Data)
	if err := units.stop(ctx); err != nil {
		return left, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, units.startAgain(context.WithoutCancel(ctx)))
		}
	}()

	// Find what the agent has started, also where only the unit of the agent shows it.
	if account != nil && units.group != "" {
		if err := host.EnterCgroup(units.group); err != nil {
			return left, err
		}
	}

	// Stop the processes and have the server remove the host, as the account of the agent.
	if account != nil {
		left, err = o.partAs(ctx, account, units.mode())
	} else {
		left, err = o.part(ctx, member)
	}
	if err != nil {
		return left, err
	}

	// Remove the state and the unit.
	if err := os.RemoveAll(o.Data); err != nil {
		return left, fmt.Errorf("the host is out of the fleet, but its state folder cannot be removed: %w", err)
	}
	left.Units, err = units.remove(ctx)
	return left, err
}

// LeavePart is the part of Leave that acts on the processes and asks the server. Root has it done by the account of the
// agent: what is in the state folder of an account must not make root execute anything.
func LeavePart(ctx context.Context, o LeaveOptions) (left Left, err error) {
	member, err := o.member()
	if err != nil {
		return left, err
	}
	return o.part(ctx, member)
}

// member reads the membership of the state folder; nil if the host is in no fleet.
func (o *LeaveOptions) member() (*enrol.Membership, error) {
	member, err := enrol.LoadMembership(o.Data)
	switch {
	case err == nil:
		return member, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case !exists(filepath.Join(o.Data, "agent-id")):
		return nil, fmt.Errorf("%s is not the state folder of an agent: give it with --data", o.Data)
	}
	return nil, nil
}

// check rejects what would fail later. It returns the account that the state folder belongs to, if that is another one
// and this program is root.
func (o *LeaveOptions) check(ctx context.Context, member *enrol.Membership) (*account, error) {
	owner, err := otherOwner(o.Data)
	if err != nil {
		return nil, err
	}
	if owner == nil {
		own, err := host.OwnPrivileges()
		if err != nil {
			return nil, err
		}
		if err := o.Policy.checkOwn(o.Data, own.Mode); err != nil {
			return nil, err
		}
	}
	if err := mayRemove(o.Data); err != nil {
		return nil, err
	}

	if member != nil && !o.Offline {
		if err := enrol.Reach(ctx, member); err != nil {
			return nil, fmt.Errorf("%w. Nothing was changed. If the server is gone, run this again with --offline", err)
		}
	}
	return owner, nil
}

// mayRemove rejects a state folder that this account cannot remove.
func mayRemove(data string) error {
	probe, err := os.MkdirTemp(filepath.Dir(data), ".gozzard-leave-")
	if err != nil {
		return fmt.Errorf("this account cannot remove %s: run the command as root. It acts as the account of the agent where "+
			"that is needed (%w)", data, err)
	}
	return os.Remove(probe)
}

// part stops the processes and has the server remove the host.
func (o *LeaveOptions) part(ctx context.Context, member *enrol.Membership) (left Left, err error) {
	if member != nil {
		left.Agent = member.Agent
	}

	// This fails while an agent uses the folder.
	if left.Processes, err = o.endProcesses(ctx, member); err != nil {
		return left, err
	}

	if member == nil || o.Offline {
		return left, nil
	}
	if err := enrol.Leave(ctx, member, enrol.Machine()); err != nil {
		return left, fmt.Errorf("%w. The state folder stays. If the server is gone, or an admin has removed this host "+
			"with gozzard hosts remove %s, run this again with --offline", err, member.Agent)
	}
	left.Server = member.Server
	return left, nil
}

// endProcesses opens the state folder as the agent would, and stops its processes if that was chosen. It returns how
// many processes were stopped, or keep running.
func (o *LeaveOptions) endProcesses(ctx context.Context, member *enrol.Membership) (n int, err error) {
	// Open the parts of an agent, without a way to the server.
	a := &Agent{options: Options{Data: o.Data, Version: o.Version, Member: member, Policy: o.Policy, Log: o.Log,
		Fatal: func(error) {}}}
	defer a.Close()
	for _, open := range []func() error{a.openState, a.openPolicy, a.openHost, a.openAgent} {
		if err := open(); err != nil {
			return 0, err
		}
	}

	// An agent that does not run starts nothing.
	if n, err = a.agent.CountRunning(); err != nil {
		return 0, errors.Join(err, a.agent.Close())
	}
	if !o.Stop {
		return n, a.agent.Close()
	}

	// Run it, stop the processes, then the agent.
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.agent.Run(ctx, noLink{}) }()
	running := a.agent.StopAll(ctx)
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
