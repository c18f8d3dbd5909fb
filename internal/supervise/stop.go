package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	gonePoll     = 20 * time.Millisecond
	gonePollSlow = 250 * time.Millisecond
	killPatience = 5 * time.Second // how long a killed process may take to leave
)

// stop ends the process by the command of stop or kill.
//
// A hosted process that waits for its next pull-up does not run, yet a caller who stops it wants it to stay down:
// hosting ends and that is a success. For everything else that does not run nothing is done and the flags stay (as
// callers of the original service see it).
func (a *actor) stop(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
	}
	if a.running() {
		return a.bringDown(ctx, id, action)
	}
	if waits, _ := a.pullUpWanted(); !waits && !a.waitsForRun() {
		return notRunning(a.key, a.spec)
	}

	out := a.cleared()
	if out.Message == "" {
		out.Message = "it was down and waiting for its next start: there was nothing left to " + action.String() +
			", it stays down"
	}

	return out
}

// bringDown ends the running process and checks that it is gone, with everything it left in its cgroup.
func (a *actor) bringDown(ctx context.Context, id gozzard.OpID, action gozzard.Action) gozzard.Outcome {
	a.stopping = true
	defer func() { a.stopping = false }()
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

	gone := a.waitGone(ctx, patience)
	switch {
	case !gone && ctx.Err() != nil:
		return gozzard.Outcome{}
	case !gone:
		return stillAlive(procName(a.key, a.spec), a.proc.PID, res.Output)
	}

	a.s.host.Collect(ctx, proc)
	out := a.cleared()
	out.Forced = forced
	return out
}

// force kills what did not end in its time, and all that came of it.
func (a *actor) force() error {
	if err := a.signal(SignalKill); err != nil {
		return err
	}
	return a.s.host.Clear(a.key)
}

// signal signals the process; one that is gone already needs none.
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

// cleared is the verdict of a process that is gone, after its leftovers are gone too. Leftovers that stay do not
// undo the stop.
func (a *actor) cleared() gozzard.Outcome {
	out := ok()
	if err := a.s.host.Clear(a.key); err != nil {
		a.log.Warn("cannot clear what the process left behind", "error", err)
		out.Message = "it is gone, but what it left behind could not be cleared: " + err.Error()
	}
	return out
}

// watchedAlive reports whether a look can be spared because the process is there and its end will be told.
func (a *actor) watchedAlive() bool {
	return a.running() && a.stopWatch != nil && a.s.host.Alive(a.proc)
}

// justSeenGone reports whether a look can be spared because there was one when the process ended.
func (a *actor) justSeenGone() bool { return !a.running() && time.Since(a.lookedAt) <= justLooked }

// waitGone returns as soon as the process is gone, false when it is still there after the time given or when ctx ended.
func (a *actor) waitGone(ctx context.Context, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for poll := gonePoll; ; poll = min(2*poll, gonePollSlow) {
		a.drain() // the watch knows how it ended, a look does not
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
