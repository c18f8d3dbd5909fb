package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	firstPoll = 10 * time.Millisecond
	slowPoll  = time.Second

	fileTick = 10 * time.Millisecond // the clock of file systems may be behind by that much

	// whoever goes on right after an exit need not look twice, nor after a short wait for its turn in a storm
	justLooked = 100 * time.Millisecond
)

// launch is one way of bringing the process up.
type launch struct {
	id     gozzard.OpID
	action gozzard.Action // whose command is run: start or restart
	verb   gozzard.Action // what was asked for, if not that
	pullUp bool           // nobody waits for a verdict
}

// attempt is one launch under way.
type attempt struct {
	launch
	began time.Time
	run   uint64 // the actor's when it began: still the same when no process was seen
	res   Result
	front bool // a process was seen while the command ran and was gone when it had ended
}

func (l launch) asked() gozzard.Action {
	if l.verb != gozzard.ActionNone {
		return l.verb
	}
	return l.action
}

// start brings the process up if it does not run.
func (a *actor) start(ctx context.Context, l launch) gozzard.Outcome {
	if a.running() || !l.pullUp || time.Since(a.lookedAt) > justLooked {
		if _, err := a.look(); err != nil {
			return failed(gozzard.CodeCommandFailed, "%v", err)
		}
	}
	if a.running() {
		return alreadyRunning(a.key, a.spec)
	}
	return a.bringUp(ctx, l)
}

// restart runs restart_cmd, also when the process does not run; without one it is a stop and a start.
func (a *actor) restart(ctx context.Context, id gozzard.OpID) gozzard.Outcome {
	if a.spec.Control.Restart == "" && a.spec.Control.Start == "" { // known before anything is stopped
		return failed(gozzard.CodeCommandFailed, "restart_cmd is empty and so is start_cmd")
	}
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
	}
	if a.spec.Control.Restart != "" {
		return a.bringUp(ctx, launch{id: id, action: gozzard.ActionRestart})
	}

	forced := false

	if a.running() {
		out := a.bringDown(ctx, id, gozzard.ActionStop)
		if out.Code != gozzard.CodeOK {
			return out
		}
		forced = out.Forced
	}

	out := a.bringUp(ctx, launch{id: id, action: gozzard.ActionStart, verb: gozzard.ActionRestart})
	out.Forced = forced
	return out
}

// bringUp runs the command and checks that the process is there afterwards.
func (a *actor) bringUp(ctx context.Context, l launch) gozzard.Outcome {
	if !a.running() && a.spec.Command(l.action) != "" {
		// Nothing was found, but what an earlier run or a command that was given up has left in the process's
		// cgroup would live on beside the new one, or even become a second copy of it.
		if err := a.s.host.Clear(a.key); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot clear what an earlier run of %s left behind: %v", a.key,
				err)
		}
	}

	a.holdByKernel() // from its first moment on
	a.lastExit, a.ended = "", nil
	startedAt, t := a.s.now().Unix(), attempt{launch: l, began: time.Now(), run: a.run}
	var out gozzard.Outcome
	t.res, out = a.command(ctx, l)
	t.front = a.goneWithCommand(t)
	if t.front && a.ended != nil && !a.ended.Known {
		a.endedAs(t.res)
	}

	a.tellHeld()

	if out.Code == gozzard.CodeOK {
		out = a.checkAlive(ctx, t)
	} else if out.Code != "" {
		// whatever the command did, the status must be true
		a.lookAgain()
		if mayEnd(a.spec.Policy) && a.ended == nil && !a.running() { // the command was the work
			a.announce(gozzard.Event{Kind: gozzard.EventRan, Code: t.res.ExitCode, Signal: t.res.Signal,
				Message: out.Message})
		}
	}

	if out.Code == gozzard.CodeOK {
		a.rec.LastStart = startedAt
	}

	return out
}

// checkAlive waits the start check out, since a process that dies within it has not started, and gives the verdict.
// What is found meanwhile is watched and shown at once. A pull-up makes way for an operation that waits.
func (a *actor) checkAlive(ctx context.Context, t attempt) gozzard.Outcome {
	check := window(a.spec.Policy.StartCheckSecs)
	commandEnded := time.Now()
	end := commandEnded.Add(check)

	if t.res.Front { // it has been up since the command began
		end = t.began.Add(check)
	}

	latest := commandEnded.Add(max(check, checkGrace))
	for poll := firstPoll; ctx.Err() == nil; poll = min(2*poll, slowPoll) {
		now := time.Now() // once: what is not over must not be late a moment after, on a machine that is slow
		makeWay := t.pullUp && a.opWaiting()
		over := makeWay || !now.Before(end)
		var f Found
		var err error
		if over || !a.running() {
			f, err = a.look()
		}
		if out, ended := a.ranToItsEnd(t, a.hopeless(t, f) || time.Since(commandEnded) >= checkGrace); ended {
			return out
		}
		switch {
		case over && a.running():
			return ok()
		case makeWay || a.hopeless(t, f) || !now.Before(latest):
			return notAlive(procName(a.key, a.spec), a.whyNot(f, err), t.res.Output)
		case over:
			a.pause(ctx, min(poll, time.Until(latest)))
		case a.running():
			a.pause(ctx, time.Until(end))
		default:
			a.pause(ctx, min(poll, time.Until(end)))
		}
	}

	return gozzard.Outcome{}
}

// hopeless reports whether the process cannot appear any more after its command has ended: nothing that was started
// lives, and the new one was of that kind, or could be found in no other way. What a command has other programs
// start, say a container, is known by its pid file alone: that one is waited for unless it was written since the
// command began.
func (a *actor) hopeless(t attempt, f Found) bool {
	if !f.Empty || a.running() {
		return false
	}
	return a.spec.Identity.PIDPath == "" || a.byCgroup && !a.upSince.Before(t.began) ||
		f.PIDFileAt.After(t.began.Add(-fileTick))
}

// goneWithCommand looks at what was taken for the process while its start command ran: it may have been a script
// that starts it, or it was in front and has ended with its command.
func (a *actor) goneWithCommand(t attempt) bool {
	if t.action != gozzard.ActionStart || t.res.Front || a.run == t.run {
		return false
	}
	if !a.running() {
		return true
	}

	f, err := a.s.host.Find(a.key, a.spec)
	switch {
	case err != nil:
		a.log.Warn("cannot look for the process", "error", err)
	case f.Proc.IsZero() && a.stopWatch == nil:
		a.down(Exit{})
		return true
	case f.Proc.IsZero(): // its watch will say how it ended
		return true
	case f.Proc != a.proc:
		a.adopt(f, Exit{})
	}

	return false
}

// endedAs takes the end of the command for the end of the process that was in front of it, when nothing better is
// known.
func (a *actor) endedAs(res Result) {
	e := Exit{Known: true, Code: res.ExitCode, Signal: res.Signal}
	a.ended, a.lastExit = &e, exitText(e)
	for i := range a.held {
		if h := &a.held[i]; h.Kind != gozzard.EventStarted {
			h.Code, h.Signal, h.Message = e.Code, e.Signal, "the process "+a.lastExit
		}
	}
}

// ranToItsEnd gives the verdict about a process that may end, as soon as it has ended and how is known. When it was
// gone before its command, or none was seen at all and none can be expected any more, the command was the work, and
// it went well or there would have been a verdict before.
func (a *actor) ranToItsEnd(t attempt, settled bool) (out gozzard.Outcome, ended bool) {
	if a.running() || !mayEnd(a.spec.Policy) {
		return out, false
	}

	out = ok()
	switch {
	case a.ended != nil && a.ended.Known && (a.ended.Code != 0 || a.ended.Signal != ""):
		return notAlive(procName(a.key, a.spec), "the process "+a.lastExit, t.res.Output), true
	case a.ended != nil && a.ended.Known:
		out.Message = "the process " + a.lastExit
	case t.front && a.ended != nil:
		out.Message = commandDone
	case a.run == t.run && settled:
		a.ended = &Exit{Known: true}
		a.announce(gozzard.Event{Kind: gozzard.EventRan, Message: commandDone})
		out.Message = commandDone
	default:
		return gozzard.Outcome{}, false
	}

	return out, true
}

// whyNot says why the process is not there.
func (a *actor) whyNot(f Found, err error) string {
	reason := f.Reason
	if err != nil {
		reason = err.Error()
	}
	switch {
	case a.lastExit == "":
		return reason
	case reason == "":
		return "the process " + a.lastExit
	}
	return "the process " + a.lastExit + "; " + reason
}

// pullUpDue reports whether the process must be started now without anybody asking.
func (a *actor) pullUpDue() bool {
	wanted, reason := a.pullUpWanted()
	if !wanted {
		a.pullAt = time.Time{}
		if reason != "" && a.message == "" {
			a.message = reason
			a.publish(false)
		}
		return false
	}

	if a.pullAt.IsZero() {
		a.pullAt = time.Now()
	}

	return !time.Now().Before(a.pullAt)
}

// pullUp starts a hosted process that is down.
func (a *actor) pullUp(ctx context.Context) {
	if !a.takeSlot(ctx) {
		return // an operation comes first; the pull-up is still due
	}
	defer a.freeSlot()
	a.pullAt = time.Time{}
	a.restarted(a.attempt(func() gozzard.Outcome {
		if err := a.s.permit(a.spec); err != nil { // tried again like any start that fails: the policy may be changed
			return failed(gozzard.CodeRefused, "%v", err)
		}
		return a.start(ctx, launch{action: gozzard.ActionStart, pullUp: true})
	}), "not running")
}

// waits reports whether a pull-up is planned.
func (a *actor) waits() bool {
	wanted, _ := a.pullUpWanted()
	return wanted && !a.pullAt.IsZero()
}
