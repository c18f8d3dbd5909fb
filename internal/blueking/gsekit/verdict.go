package gsekit

import (
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
)

// The numbers of tasks by state. A task with an error has a number of GSE or of this API.
const (
	errSucceeded = 0
	errPending   = 1
	errRunning   = 2
	errFailed    = 3
	errIgnored   = 4
	errOther     = -1
)

// errCode is the number of a task.
func errCode(t *record.JobTask) int {
	switch t.State {
	case record.JobPending:
		return errPending
	case record.JobRunning:
		return errRunning
	case record.JobSucceeded:
		return errSucceeded
	case record.JobIgnored:
		return errIgnored
	}
	return reasonCode(t.Reason, t.Code)
}

// reasonCode is the table of reasons.
func reasonCode(reason record.JobReason, code gozzard.Code) int {
	switch reason {
	case record.ReasonNone:
		return errFailed
	case record.ReasonVerdict:
		return blueking.EntryNumber(code)
	case record.ReasonMissing:
		return codeMissing
	case record.ReasonTemplate:
		return codeTemplate
	case record.ReasonEarlier:
		return codeEarlierFailed
	case record.ReasonNothing:
		return codeNothing
	case record.ReasonTimeout:
		return codeTimeout
	case record.ReasonRefused:
		return codeGSE
	case record.ReasonUnbound:
		return errIgnored
	case record.ReasonNoActive:
		return codeNoActive
	case record.ReasonRender:
		return codeTemplate
	case record.ReasonUnsafe:
		return codeUnsafe
	case record.ReasonInclude:
		return codeNoTemplate
	case record.ReasonGone:
		return codeNoProcess
	case record.ReasonNotMade:
		return codeNotMade
	case record.ReasonWrite, record.ReasonRead, record.ReasonThen, record.ReasonWatch, record.ReasonStopped:
		return codeHostFile
	case record.ReasonAbsent:
		return codeAbsent
	case record.ReasonDiffers:
		return codeDiffers
	}
	return errOther
}

// codeText is what a number of a task means.
func (l speech) codeText(code int) string {
	switch code {
	case errSucceeded:
		return l.say(saySucceeded)
	case errPending:
		return l.say(sayPending)
	case errRunning:
		return l.say(sayRunning)
	case errFailed:
		return l.say(sayFailed)
	case errIgnored:
		return l.say(sayIgnored)
	case blueking.EntryAgentAbnormal:
		return l.say(sayAgentAbnormal)
	case blueking.EntryAlreadyRunning:
		return l.say(sayAlreadyRunning)
	case blueking.EntryNotRunning:
		return l.say(sayNotRunning)
	case blueking.EntryUnknownOpType:
		return l.say(sayUnknownOp)
	case blueking.EntryCheckFailed:
		return l.say(sayStartCheck)
	case blueking.EntryFailed:
		return l.say(sayCommandFailed)
	case blueking.EntryAlreadyRegistered:
		return l.say(sayGSEOther)
	case codeNothing:
		return l.say(sayNothing)
	case codeTimeout:
		return l.say(sayTimeout)
	case codeGSE:
		return l.say(sayGSEError)
	case codeEarlierFailed:
		return l.say(sayEarlier)
	case codeTemplate:
		return l.say(sayTemplate)
	case codeMissing:
		return l.say(sayMissing)
	case codeNoActive:
		return l.say(sayNoActiveShort)
	case codeUnsafe:
		return l.say(sayUnsafeShort)
	case codeNoTemplate:
		return l.say(sayNoTemplate)
	case codeNoProcess:
		return l.say(sayNoProcessShort)
	case codeNotMade:
		return l.say(sayNotMade)
	case codeHostFile:
		return l.say(sayHostFileShort)
	case codeAbsent:
		return l.say(sayAbsentShort)
	case codeDiffers:
		return l.say(sayDiffers)
	}
	return l.say(sayOther)
}

// reason says why a task or job did not succeed. The form depends on the source of the error; callers know both.
func (l speech) reason(reason record.JobReason, code gozzard.Code, action gozzard.Action, message string) string {
	number := reasonCode(reason, code)
	text := l.codeText(number)
	message = l.Message(message)

	if reason == record.ReasonVerdict {
		if number == blueking.EntryCheckFailed && (action == gozzard.ActionStop || action == gozzard.ActionKill) {
			text = l.say(sayStopCheck)
		}
		if message == "" {
			message = string(code)
		}
		return fmt.Sprintf("[GSE_ERROR-%d]: %s (detail: %s)", number, text, message)
	}

	if message == "" {
		return fmt.Sprintf("[%d] %s", number, text)
	}

	return fmt.Sprintf("[%d] %s: %s", number, text, message)
}

// retryable reports whether a retry may help: it does not change what the process was when the job was created.
func retryable(reason record.JobReason) bool {
	return reason != record.ReasonMissing && reason != record.ReasonTemplate
}

// solutions are hints for people.
func (l speech) solutions(reason record.JobReason) []solution {
	switch reason {
	case record.ReasonMissing:
		return []solution{{l.say(sayHintAttribute)}, {l.say(sayHintTemplate)}}
	case record.ReasonTimeout:
		return []solution{{l.say(sayHintScript)}, {l.say(sayHintAdmin)}}
	}
	return []solution{}
}
