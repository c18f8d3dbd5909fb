package supervise

import "github.com/gozzard/gozzard"

// announce tells of something that happened to the process, for those who keep a history of it.
func (a *actor) announce(e gozzard.Event) {
	if a.s.event == nil {
		return
	}
	e.Key, e.At, e.Message = a.key, a.s.now().UnixMilli(), gozzard.Clip(e.Message, maxStatusBytes)
	if a.holding {
		a.held = append(a.held, e)
		return
	}
	a.s.event(e)
}

// tellHeld tells what happened while a start command ran. A script of it that looked like the process for a moment
// is not told of.
func (a *actor) tellHeld() {
	held := a.held
	a.held, a.holding = nil, false
	for _, e := range held {
		if !a.running() || e.PID == a.proc.PID {
			a.s.event(e)
		}
	}
}

// announceStart tells that the process runs. What was found when the agent came up has not started: the agent has.
func (a *actor) announceStart() {
	if a.restoring {
		return
	}
	text := "found running"
	if a.operating {
		text = "started"
	}
	a.announce(gozzard.Event{Kind: gozzard.EventStarted, PID: a.proc.PID, Message: text})
}

// announceExit tells that a process has ended; one that may end has done its work by it.
func (a *actor) announceExit(p Proc, e Exit) {
	kind := gozzard.EventExited
	if a.spec != nil && mayEnd(a.spec.Policy) && !a.stopping {
		kind = gozzard.EventRan
	}
	ev := gozzard.Event{Kind: kind, PID: p.PID, Code: e.Code, Signal: e.Signal, Core: e.Core,
		Message: "the process " + exitText(e)}
	if e.Signal != "" {
		ev.Code = -1
	}
	a.announce(ev)
}

// announceCancel tells that a pull-up which was waiting is given up because somebody does not want the process any
// more.
func (a *actor) announceCancel(by gozzard.Action) {
	a.announce(gozzard.Event{Kind: gozzard.EventRestartCancelled, Message: cancelText(procName(a.key, a.spec), by)})
}

// restarted draws the consequences of a restart that nobody asked for, and tells of it.
func (a *actor) restarted(out gozzard.Outcome, why string) {
	name := procName(a.key, a.spec)
	switch out.Code {
	case "": // given up
		return
	case gozzard.CodeAlreadyRunning: // somebody else was faster
		a.message = ""
	case gozzard.CodeOK:
		a.message = ""
		a.restarts++
		a.announce(gozzard.Event{Kind: gozzard.EventRestarted, PID: a.proc.PID,
			Message: restartText(name, why, "")})
	default:
		a.message = gozzard.Clip(out.Message, maxStatusBytes)
		a.announce(gozzard.Event{Kind: gozzard.EventRestartFailed, Message: restartText(name, why, out.Message)})
		if !a.running() {
			a.countDown(0, out.Message)
		}
	}

	a.publish(false)
}
