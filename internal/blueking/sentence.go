package blueking

import (
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
)

// GSE's sentences. Clients compare some of them: one decides by the first word of a failed check.

const (
	alreadyRegistered = "Fail to register, for the process info already exists."

	seenAlive = "still alive"
	seenDead  = "not alive"
)

// alreadyRunning is GSE's sentence. If the message says that the process is not supervised, the sentence goes on: the
// start did not change that, and callers expect a process that they started to be managed.
func alreadyRunning(procName, name, message string) string {
	text := fmt.Sprintf("no need to start the process %s(%s) repeatedly that is already running", procName, name)
	if _, _, detail, ok := gozzard.SplitStateMessage(message); ok && detail == gozzard.NotSupervised {
		text += "; it is running and not managed: when it ends, it is not started again; send op_type 3 to manage it"
	}
	return text
}

func notRunning(action gozzard.Action, procName string) string {
	return fmt.Sprintf("no need to %s the process(%s) that is not running", action.Stored(), procName)
}

func checkFailed(action gozzard.Action, procName, seen, detail string) string {
	text := fmt.Sprintf("%s process (%s) failed, for post-check status %s", action.Stored(), procName, seen)
	return Words{}.with(text, detail)
}

// checkDetail is what a failed check found beyond the state. Agents of earlier versions send the whole sentence of
// GSE: its beginning is removed, so that it does not stand in the answer twice.
func checkDetail(action gozzard.Action, seen, message string) string {
	if _, _, detail, ok := gozzard.SplitStateMessage(message); ok {
		return detail
	}

	begin, rest, ok := strings.Cut(message, ") failed, for post-check status "+seen)
	if ok && strings.HasPrefix(begin, action.Stored()+" process (") {
		return strings.TrimLeft(rest, ":; ")
	}

	return message
}

// Sentence is the message of an outcome in GSE's words, with the name that the agent gave. Messages without a state
// stay as they are; so do those of agents of earlier versions, which are in GSE's words already.
func Sentence(action gozzard.Action, code gozzard.Code, name, message string) string {
	if code == gozzard.CodeAlreadyRegistered {
		return alreadyRegistered
	}

	found, procName, detail, ok := gozzard.SplitStateMessage(message)
	switch {
	case !ok:
		return message
	case code == gozzard.CodeAlreadyRunning:
		return alreadyRunning(procName, name, message)
	case code == gozzard.CodeNotRunning:
		return notRunning(action, procName)
	case code == gozzard.CodeCheckFailed && found == gozzard.FoundStillRunning:
		return checkFailed(action, procName, seenAlive, detail)
	case code == gozzard.CodeCheckFailed:
		return checkFailed(action, procName, seenDead, detail)
	}

	return message
}
