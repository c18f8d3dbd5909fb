package supervise

import (
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
)

// announce reports an event of the process, or keeps it while a start command runs.
func (a *actor) announce(e gozzard.Event) {
	if a.s.event == nil {
		return
	}
	e.Key, e.At, e.Message = a.key, a.s.now().UnixMilli(), clipText(e.Message)
	if a.caused(e.Kind) {
		e.Cause = a.cause
	}
	if a.delaying {
		a.delayed = append(a.delayed, e)
		return
	}
	a.merger.add(e)
}

// caused reports whether the operation in progress causes an event of a kind that happens now. What only happens at the
// same time, such as the crash of a process while its definition is replaced, has no cause.
func (a *actor) caused(kind gozzard.EventKind) bool {
	switch kind {
	case gozzard.EventStartFailed, gozzard.EventRestartCancelled:
		return true
	case gozzard.EventStarted:
		return a.starting
	case gozzard.EventExited, gozzard.EventRan:
		return a.starting || a.stopping
	}
	return false
}

// announceStartFailure reports that an operation could not start the process.
func (a *actor) announceStartFailure(action gozzard.Action, out gozzard.Outcome) {
	if startsProcess(action) && out.Code != gozzard.CodeOK && out.Code != gozzard.CodeAlreadyRunning {
		a.announce(gozzard.Event{Kind: gozzard.EventStartFailed, Message: out.Message})
	}
}

// sendDelayedEvents reports what happened while a start command ran. It drops events about a script of the command that
// looked like the process for a moment.
func (a *actor) sendDelayedEvents() {
	delayed := a.delayed
	a.delayed, a.delaying = nil, false
	for _, e := range delayed {
		if !a.running() || e.PID == a.proc.PID {
			a.merger.add(e)
		}
	}
}

// announceStart reports that the process runs. before is the process whose place it took although that one still runs. A process that was already running when the agent started is not
// reported.
func (a *actor) announceStart(how identity.How, before Proc) {
	if a.restoring && how == identity.HowRecord {
		return
	}
	text := "found running"
	switch {
	case !before.IsZero():
		text = fmt.Sprintf("took the place of pid %d, which still runs", before.PID)
	case how == identity.HowPIDFile && a.spec.Identity.PIDPath != "":
		text = "found running by its pid file " + a.spec.Identity.PIDPath
	case a.restoring:
		return
	case a.operating:
		text = "started"
	}
	a.announce(gozzard.Event{Kind: gozzard.EventStarted, PID: a.proc.PID, Message: text})
}

// announceExit reports that a process has ended. For a process that may end, that is the end of a run. output is what it
// printed last, if that may say why.
func (a *actor) announceExit(p Proc, e Exit, output string) {
	a.noteEnd(p, e)
	kind := gozzard.EventExited
	if a.spec != nil && mayEnd(a.spec.Policy) && !a.stopping &&
		(a.spec.Policy.Restart != gozzard.RestartOnFailure || endedWell(e)) {
		kind = gozzard.EventRan
	}

	text := "the process " + exitText(e)
	ev := gozzard.Event{
		Kind: kind, PID: p.PID, Code: e.Code, Known: e.Known, Signal: e.Signal, Core: e.Core,
		Message: clipText(text + lastOutput(output)),
	}
	if e.Signal != "" {
		ev.Code, ev.Known = -1, false
	}
	a.announce(ev)
}

// announceCancel reports that a planned pull-up is cancelled, because an operation ended the supervision.
func (a *actor) announceCancel(by gozzard.Action) {
	a.announce(gozzard.Event{Kind: gozzard.EventRestartCancelled, Message: cancelText(procName(a.key, a.spec), by)})
}

// finishRestart reports the outcome of a restart without a request, and plans the next one after a failure.
func (a *actor) finishRestart(out gozzard.Outcome, why string) {
	name := procName(a.key, a.spec)
	switch out.Code {
	case "": // ctx has ended
		return
	case gozzard.CodeAlreadyRunning: // something else has started it meanwhile
		a.message = ""
	case gozzard.CodeOK:
		a.message = ""
		a.noteRestart()
		text := restartText(name, why, "")
		a.announce(gozzard.Event{Kind: gozzard.EventRestarted, PID: a.proc.PID, Message: text})
	default:
		a.message = clipText(out.Message)
		if out.Code == gozzard.CodeCommandFailed || out.Code == gozzard.CodeCheckFailed {
			a.noteRestart() // it was tried
		}
		a.announce(gozzard.Event{Kind: gozzard.EventRestartFailed, Message: restartText(name, why, out.Message)})
		if !a.running() {
			a.planPullUp(0, out.Message)
		}
	}

	a.publish(false)
}
