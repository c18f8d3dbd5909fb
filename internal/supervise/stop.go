package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	gonePoll     = 20 * time.Millisecond
	gonePollSlow = 250 * time.Millisecond
	killPatience = 5 * time.Second // how long a killed process may take to disappear
)

// stop ends the process with the command of stop or kill.
//
// A supervised process that waits for its next pull-up is not running. A caller that stops it wants it to stay down,
// so supervision ends and that is a success. So does what a dead main process left behind. For any other process that
// is not running, the flags stay, as in the original service. In all cases nothing of it runs afterwards: not even a
// command of an earlier start that could still bring it up.
func (a *actor) stop(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	if out, ended := a.beforeStop(action); ended {
		return out
	}
	return a.bringDown(ctx, id, action)
}

// beforeStop looks at the process. If it is not running, beforeStop ends what is left of it and returns the verdict.
func (a *actor) beforeStop(action gozzard.Action) (out gozzard.Outcome, ended bool) {
	// Look at it.
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err), true
	}
	switch {
	case a.running():
		return gozzard.Outcome{}, false
	case a.unclear != "":
		return unclear(a.unclear), true
	}

	// End what is left of it.
	waits, _ := a.pullUpWanted()
	waits = waits || a.awaitsPlannedRun()
	orphans := a.orphans
	out = a.clearLeftovers(orphans)

	// Say what was found.
	switch {
	case out.Message != "":
	case len(orphans) > 0:
		out.Message = "its main process had ended before; what it had left behind was ended: " + pidList(orphans)
	case waits:
		out.Message = "it was down and waiting for its next start: there was nothing left to " + action.String() +
			", it stays down"
	default:
		return notRunning(a.key, a.spec), true
	}
	return out, true
}

// bringDown ends the running process and checks that it is gone, together with everything that belongs to it.
func (a *actor) bringDown(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	a.stopping = true
	defer func() { a.stopping = false }()

	// Find out what belongs to it, while it is there to be asked.
	proc := a.proc
	members, err := a.s.host.Members(a.query())
	if err != nil {
		return failed(gozzard.CodeCommandFailed, "cannot list the processes of %s: %v", a.key, err)
	}

	// End it: with the definition's command, or with a signal.
	patience := max(window(a.spec.Policy.StopCheckSecs), checkGrace)
	var res Result
	forced := false
	switch {
	case a.spec.Command(action) != "":
		var out gozzard.Outcome
		if res, out = a.command(ctx, launch{id: id, action: action}); out.Code != gozzard.CodeOK {
			return out
		}
	case action == gozzard.ActionKill:
		patience = max(patience, killPatience)
		if err := a.force(members); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", proc.PID, err)
		}
	default:
		if err := a.signal(stopSignal(a.spec.Policy)); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot end pid %d: %v", proc.PID, err)
		}
		if a.waitGone(ctx, patience) || ctx.Err() != nil {
			break
		}
		forced = true
		patience = killPatience
		if err := a.force(members); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", proc.PID, err)
		}
	}

	// Wait until it is gone.
	gone := a.waitGone(ctx, patience)
	switch {
	case !gone && ctx.Err() != nil:
		return gozzard.Outcome{}
	case !gone:
		return stillAlive(procName(a.key, a.spec), a.proc.PID, res.Output)
	}

	// Remove what is left of it.
	a.s.host.Collect(ctx, proc)
	out := a.clearLeftovers(members)
	out.Forced = forced
	return out
}

// force kills the process and everything that belongs to it.
func (a *actor) force(members []Proc) error {
	if err := a.signal(SignalKill); err != nil {
		return err
	}
	return a.clear(members)
}

// clear kills everything that the commands of the process have started, and the given processes.
func (a *actor) clear(also []Proc) error {
	err := a.s.host.Clear(a.query(), also)
	if err == nil {
		a.clearAt = time.Time{}
		a.setOrphans(nil)
	}
	return err
}

// signal sends a signal to the process. It is no error if the process is gone already.
func (a *actor) signal(sig Signal) error {
	if !a.running() {
		return nil
	}
	err := a.s.host.Signal(a.proc, sig)
	if err != nil && !a.s.host.Alive(a.proc) {
		return nil
	}
	return err
}

// clearLeftovers kills what a stopped process left behind. The outcome is a success even if that fails: the
// process itself is gone.
func (a *actor) clearLeftovers(also []Proc) gozzard.Outcome {
	out := ok()
	if err := a.clear(also); err != nil {
		a.log.Warn("cannot clear what the process left behind", "err", err)
		out.Message = "it is gone, but what it left behind could not be cleared: " + err.Error()
	}
	return out
}

// waitGone waits until the process is gone. It returns false if the process is still there after the given time, or
// if ctx ended. It looks at the process that the stop began with, and at no other.
func (a *actor) waitGone(ctx context.Context, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for poll := gonePoll; ; poll = min(2*poll, gonePollSlow) {
		a.drain() // first: a watch knows how the process ended
		left := time.Until(end)
		if a.running() && (a.stopWatch == nil || left <= 0) && !a.s.host.Alive(a.proc) {
			a.markDown(Exit{})
		}
		if !a.running() {
			return true
		}

		if left <= 0 || ctx.Err() != nil {
			return false
		}
		a.pause(ctx, min(poll, left))
	}
}
