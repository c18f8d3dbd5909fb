package supervise

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	firstPoll = 50 * time.Millisecond
	slowPoll  = time.Second
)

// launch is one way of bringing the process up.
type launch struct {
	id     gozzard.OpID
	action gozzard.Action // whose command is run: start or restart
	verb   gozzard.Action // what was asked for, if not that
	pullUp bool           // nobody waits for a verdict
}

func (l launch) asked() gozzard.Action {
	if l.verb != gozzard.ActionNone {
		return l.verb
	}
	return l.action
}

// start brings the process up if it does not run.
func (a *actor) start(ctx context.Context, l launch) gozzard.Outcome {
	if _, err := a.look(); err != nil {
		return failed(gozzard.CodeCommandFailed, "%v", err)
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
		// Nothing was found, but what an earlier run or a command that was given up has left in the process's cgroup would live on beside the
		// new one, or even become a second copy of it.
		if err := a.s.host.Clear(a.key); err != nil {
			return failed(gozzard.CodeCommandFailed, "cannot clear what an earlier run of %s left behind: %v", a.key, err)
		}
	}
	a.lastExit = ""
	began := a.s.now().Unix()
	res, out := a.command(ctx, l.id, l.action)
	if out.Code == gozzard.CodeOK {
		out = a.checkAlive(ctx, l, res.Output)
	} else if out.Code != "" {
		if _, err := a.look(); err != nil { // whatever the command did, the status must be true
			a.log.Warn("cannot look for the process", "error", err)
		}
	}
	if out.Code == gozzard.CodeOK {
		a.rec.LastStart = began
	}
	return out
}

// checkAlive waits the start check out, since a process that dies within it has not started, and gives the verdict. What is found meanwhile is
// watched and shown at once. A pull-up makes way for an operation that waits.
func (a *actor) checkAlive(ctx context.Context, l launch, output string) gozzard.Outcome {
	check := window(a.spec.Policy.StartCheckSecs)
	end := time.Now().Add(check)
	latest := time.Now().Add(max(check, checkGrace))
	for poll := firstPoll; ctx.Err() == nil; poll = min(2*poll, slowPoll) {
		makeWay := l.pullUp && a.opWaiting()
		over := makeWay || !time.Now().Before(end)
		var f Found
		var err error
		if over || !a.running() {
			f, err = a.look()
		}
		switch {
		case over && a.running():
			return ok()
		case makeWay || !time.Now().Before(latest):
			return notAlive(l.asked(), procName(a.key, a.spec), a.whyNot(f, err), output)
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
	a.pullAt = time.Time{}
	out := a.attempt(func() gozzard.Outcome {
		return a.start(ctx, launch{action: gozzard.ActionStart, pullUp: true})
	})
	switch out.Code {
	case "": // given up
		return
	case gozzard.CodeOK, gozzard.CodeAlreadyRunning:
		a.message = ""
	default:
		a.message = clip(out.Message, maxStatusBytes)
		a.countDown(0, out.Message)
	}
	a.publish(false)
}
