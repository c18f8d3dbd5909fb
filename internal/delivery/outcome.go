package delivery

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// Why an attempt is given up, and what comes next.
const (
	noAnswer = "no answer from the host in time; the next contact shows whether it was done"
	notSent  = "its time was over while it waited for other operations, and it was not sent; " +
		"the host is asked to confirm that"
	askedToCancel = "the caller cancelled it; it may have been sent before, so the next contact shows whether it was done"
	notDone       = "the host has it and has not finished it in time; the host is asked to cancel it if it has not begun"
)

// giveUpReason is why an attempt is given up. The lock is held.
func (a *Attempt) giveUpReason(event EventKind) string {
	switch {
	case event == CancelAsked:
		return askedToCancel
	case a.state == Queued && a.agent.online:
		return notSent
	case a.state == Received && a.agent.online:
		return notDone
	}
	return noAnswer
}

// verdict is one that this server gives without a report of the agent.
type verdict struct {
	from    gozzard.AttemptState // only from there: another server may have changed the attempt meanwhile
	to      gozzard.AttemptState
	outcome func(a *Attempt) gozzard.Outcome
}

// The verdicts of the server.
var (
	expired = verdict{from: gozzard.AttemptPending, to: gozzard.AttemptNotExecuted,
		outcome: func(a *Attempt) gozzard.Outcome {
			return gozzard.Outcome{Code: gozzard.CodeUnreachable,
				Message: fmt.Sprintf("not executed: host %s did not come back in time", a.agent.id)}
		}}

	superseded = verdict{from: gozzard.AttemptPending, to: gozzard.AttemptNotExecuted,
		outcome: func(*Attempt) gozzard.Outcome {
			return gozzard.Outcome{Code: gozzard.CodeSuperseded,
				Message: "not executed: a newer operation on the same process was waiting too"}
		}}

	lost = verdict{from: gozzard.AttemptUnknown, to: gozzard.AttemptInterrupted,
		outcome: func(*Attempt) gozzard.Outcome {
			return gozzard.Outcome{Code: gozzard.CodeInterrupted, Message: "interrupted: the host was not heard of again; " +
				"it was done at most once and is not repeated by itself"}
		}}
)

// neverSent is the outcome of an attempt that this server gave up before it was sent, and that the agent does not have.
var neverSent = gozzard.Outcome{Code: gozzard.CodeBusy,
	Message: "not executed: its time was over while it waited for other operations, and it was not sent to the host; " +
		"if it is still wanted, send it again"}

// notKnown is the outcome of an attempt that nothing on record decides.
var notKnown = gozzard.Outcome{Code: gozzard.CodeInterrupted,
	Message: "interrupted: the host lost its journal or the server its record, so it is not known whether this was done; " +
		"it was done at most once and is not repeated by itself"}

// Cancelled is the verdict of an attempt whose caller cancelled it before it was sent.
var Cancelled = gozzard.Outcome{Code: gozzard.CodeCancelled,
	Message: "not executed: the task was cancelled before this was sent to the host"}

// AskedToCancel is the outcome of an attempt that may have been sent when its caller cancelled it, until its host is heard.
var AskedToCancel = gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: askedToCancel}

// outcomeOf completes the outcome of a report whose phase carries none.
func outcomeOf(r *gozzard.OpReport) gozzard.Outcome {
	out := r.Outcome
	switch {
	case r.Phase == gozzard.PhaseInterrupted:
		out.Code = gozzard.CodeInterrupted
		out.Message = "interrupted: the agent or its host went down in the middle; " +
			"it was done at most once and is not repeated by itself"
		if more, ok := strings.CutPrefix(r.Outcome.Message, gozzard.InterruptedText+"; "); ok {
			out.Message += "; " + more // what became of its command
		}
	case r.Phase == gozzard.PhaseNever && (out.Code == "" || out.Code == gozzard.CodeOK):
		out.Code = gozzard.CodeExpired
		out.Message = "not executed: its time was over before the host could begin"
	}
	return out
}

// reconciledOutcome is the outcome of an attempt that a HELLO decided.
func reconciledOutcome(next gozzard.AttemptState, r *gozzard.OpReport) gozzard.Outcome {
	if r.Phase != gozzard.PhaseAbsent {
		return outcomeOf(r)
	}

	switch next {
	case gozzard.AttemptInterrupted:
		return notKnown
	case gozzard.AttemptNotExecuted:
		return gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "not executed: it never reached the host"}
	}
	return gozzard.Outcome{}
}
