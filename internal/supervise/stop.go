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
// so supervision ends and that is a success. For any other process that is not running, nothing is done and the
// flags stay, as in the original service.
func (a *actor) stop(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
	}
	if a.running() {
		return a.bringDown(ctx, id, action)
	}
	if waits, _ := a.pullUpWanted(); !waits && !a.awaitsPlannedRun() {
		return notRunning(a.key, a.spec)
	}

	out := a.clearLeftovers()
	if out.Message == "" {
		out.Message = "it was down and waiting for its next start: there was nothing left to " + action.String() +
			", it stays down"
	}

	return out
}

// bringDown ends the running process and checks that it is gone, together with everything it left in its cgroup.
func (a *actor) bringDown(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	a.stopping = true
	defer func() { a.stopping = false }()

	// End it: with the definition's command, or with a signal.
	proc := a.proc
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
		if err := a.signal(SignalKill); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", a.proc.PID, err)
		}
	default:
		if err := a.signal(SignalTerm); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot end pid %d: %v", a.proc.PID, err)
		}
		if a.waitGone(ctx, patience) || ctx.Err() != nil {
			break
		}
		forced = true
		patience = killPatience
		if err := a.force(); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot kill pid %d: %v", a.proc.PID, err)
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
	out := a.clearLeftovers()
	out.Forced = forced
	return out
}

// force kills a process that did not end in time, and everything in its cgroup.
func (a *actor) force() error {
	if err := a.signal(SignalKill); err != nil {
		return err
	}
	return a.s.host.Clear(a.key)
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

// clearLeftovers kills what a stopped process left in its cgroup. The outcome is a success even if that fails: the
// process itself is gone.
func (a *actor) clearLeftovers() gozzard.Outcome {
	out := ok()
	if err := a.s.host.Clear(a.key); err != nil {
		a.log.Warn("cannot clear what the process left behind", "err", err)
		out.Message = "it is gone, but what it left behind could not be cleared: " + err.Error()
	}
	return out
}

// watchedAlive reports whether the process is alive and watched, so that there is no need to look for it.
func (a *actor) watchedAlive() bool {
	return a.running() && a.stopWatch != nil && a.s.host.Alive(a.proc)
}

// justSeenGone reports whether the last look is recent and found no process, so that there is no need to look again.
func (a *actor) justSeenGone() bool { return !a.running() && time.Since(a.lookedAt) <= justLooked }

// waitGone waits until the process is gone. It returns false if the process is still there after the given time, or
// if ctx ended.
func (a *actor) waitGone(ctx context.Context, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for poll := gonePoll; ; poll = min(2*poll, gonePollSlow) {
		a.drain() // first: a watch knows how the process ended, a look does not
		if !a.watchedAlive() && !a.justSeenGone() {
			a.lookAgain()
		}
		if !a.running() {
			return true
		}

		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil {
			return false
		}
		a.pause(ctx, min(poll, left))
	}
}
