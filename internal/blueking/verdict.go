package blueking

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// The numbers of error_code in the result of an attempt. GSE and Job use the same.
const (
	EntryOK                = 0
	EntryInWork            = 115
	EntryAgentAbnormal     = 117
	EntryTerminated        = 126
	EntryAlreadyRunning    = 828
	EntryNotRunning        = 829
	EntryUnknownOpType     = 832
	EntryCheckFailed       = 836
	EntryAlreadyRegistered = 850
	EntryFailed            = 65535
)

const notKnownYet = "the outcome is not known yet and will be corrected here once it is"

// EntryNumber is the table of codes and numbers.
func EntryNumber(code gozzard.Code) int {
	switch code {
	case gozzard.CodeOK:
		return EntryOK
	case gozzard.CodeAlreadyRunning:
		return EntryAlreadyRunning
	case gozzard.CodeNotRunning:
		return EntryNotRunning
	case gozzard.CodeUnknownAction:
		return EntryUnknownOpType
	case gozzard.CodeCheckFailed:
		return EntryCheckFailed
	case gozzard.CodeAlreadyRegistered:
		return EntryAlreadyRegistered
	case gozzard.CodeUnreachable, gozzard.CodeExpired:
		return EntryAgentAbnormal
	case gozzard.CodeCancelled:
		return EntryTerminated
	}
	return EntryFailed // command_failed, no_definition, refused, interrupted, superseded, busy and what is not known here
}

// Verdict is the number and the text of an attempt. procName is the name of the program. The sentences of GSE itself
// are the same in every language, as they are in GSE: clients compare them.
func (w Words) Verdict(a *gozzard.Attempt, procName string) (number int, text string) {
	switch a.State {
	case gozzard.AttemptPending, gozzard.AttemptDispatched:
		return EntryInWork, "handling"
	case gozzard.AttemptUnknown:
		if a.Outcome.Message == "" {
			return EntryAgentAbnormal, w.Message("the agent did not answer in time: " + notKnownYet)
		}
		return EntryAgentAbnormal, w.with(notKnownYet, a.Outcome.Message)
	case gozzard.AttemptInterrupted:
		return EntryFailed, w.with("interrupted: agent or host died in the middle, "+
			"the operation was done at most once and is not repeated by itself", a.Outcome.Message)
	}

	code := a.Outcome.Code
	switch {
	case code == gozzard.CodeOK && a.State == gozzard.AttemptOK, forgiven(a.Action, code):
		return EntryOK, "success"
	case code == gozzard.CodeOK: // cannot happen: the state contradicts the code
		return EntryFailed, w.Message(fmt.Sprintf("%s did not succeed: %s", a.Action.Stored(), a.State))
	}

	return EntryNumber(code), w.textOf(a, procName)
}

// forgiven reports whether callers of this API expect success for an outcome: the query or the removal of a process
// that is not registered, or the end of its supervision.
func forgiven(action gozzard.Action, code gozzard.Code) bool {
	switch action {
	case gozzard.ActionQuery, gozzard.ActionUnhost:
		return code == gozzard.CodeNoDefinition
	case gozzard.ActionUnregister:
		return code == gozzard.CodeNoDefinition || code == gozzard.CodeNotRunning
	}
	return false
}

// textOf words an outcome as clients of this API know it.
func (w Words) textOf(a *gozzard.Attempt, procName string) string {
	code, message := a.Outcome.Code, a.Outcome.Message
	switch code {
	case gozzard.CodeAlreadyRunning:
		return alreadyRunning(procName, a.Key.Name, message)
	case gozzard.CodeNotRunning:
		return notRunning(a.Action, procName)
	case gozzard.CodeAlreadyRegistered:
		return alreadyRegistered
	case gozzard.CodeCheckFailed:
		seen := seenDead
		if a.Action == gozzard.ActionStop || a.Action == gozzard.ActionKill {
			seen = seenAlive
		}
		return checkFailed(a.Action, procName, seen, checkDetail(a.Action, seen, message))
	case gozzard.CodeSuperseded:
		return w.notExecuted("a newer operation on the same process came first", message)
	case gozzard.CodeExpired:
		return w.notExecuted("the host did not come back in time", message)
	case gozzard.CodeCancelled:
		return w.notExecuted("the task was cancelled before this was sent to the host", message)
	case gozzard.CodeBusy:
		return w.notExecuted("its time was over while it waited for other operations", message)
	}

	switch {
	case message != "":
		return w.Message(message)
	case code == gozzard.CodeUnreachable:
		return w.Message("the agent is not reachable")
	case code == gozzard.CodeNoDefinition:
		return w.Message("nothing is registered under this name and no spec was sent")
	}

	return w.Message(fmt.Sprintf("%s failed: %s", a.Action.Stored(), code))
}

// notExecuted words why an operation was not executed: by the message that came with the verdict, because only that
// says what happened, or by what the code means.
func (w Words) notExecuted(meaning, message string) string {
	const start = "not executed: "
	switch {
	case message == "":
		message = meaning
	case strings.HasPrefix(message, start):
		return w.Message(message)
	}
	return w.Message("not executed: " + message)
}

// with adds details to a sentence.
func (w Words) with(text, message string) string {
	if message == "" {
		return w.Message(text)
	}
	return w.Message(text) + ": " + w.Message(message)
}
