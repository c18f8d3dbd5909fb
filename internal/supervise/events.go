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
	e.Key, e.At, e.Message = a.key, a.s.now().UnixMilli(), gozzard.Clip(e.Message, maxStatusBytes)
	if a.delaying {
		a.delayed = append(a.delayed, e)
		return
	}
	a.merger.add(e)
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

// announceExit reports that a process has ended. For a process that may end, that is the end of a run.
func (a *actor) announceExit(p Proc, e Exit) {
	kind := gozzard.EventExited
	if a.spec != nil && mayEnd(a.spec.Policy) && !a.stopping &&
		(a.spec.Policy.Restart != gozzard.RestartOnFailure || endedWell(e)) {
		kind = gozzard.EventRan
	}

	ev := gozzard.Event{
		Kind: kind, PID: p.PID, Code: e.Code, Signal: e.Signal, Core: e.Core,
		Message: "the process " + exitText(e),
	}
	if e.Signal != "" {
		ev.Code = -1
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
		a.restarts++
		text := restartText(name, why, "")
		a.announce(gozzard.Event{Kind: gozzard.EventRestarted, PID: a.proc.PID, Message: text})
	default:
		a.message = gozzard.Clip(out.Message, maxStatusBytes)
		a.announce(gozzard.Event{Kind: gozzard.EventRestartFailed, Message: restartText(name, why, out.Message)})
		if !a.running() {
			a.planPullUp(0, out.Message)
		}
	}

	a.publish(false)
}
