package gozzard

import "strings"

// Found says in which state an operation found a process.
type Found string

// What an operation can find.
const (
	FoundAlreadyRunning Found = "already running" // CodeAlreadyRunning
	FoundNotRunning     Found = "not running"     // CodeNotRunning; CodeCheckFailed of a start or restart
	FoundStillRunning   Found = "still running"   // CodeCheckFailed of a stop or kill
)

// The details of FoundAlreadyRunning when the process was not supervised before the start.
const (
	NotSupervised = "it is not supervised: when it ends, it is not started again"
	SupervisedNow = "it is supervised from now on"
)

const (
	foundEnd = ": " // between the state and the name
	nameEnd  = "; " // between the name and the details
)

// StateMessage is the message of an outcome that is about the state of a process: the state, the name that the process
// has on its host and, if there are any, details. An example is "still running: nginx; pid 7".
func StateMessage(found Found, name, detail string) string {
	text := string(found) + foundEnd + name
	if detail != "" {
		text += nameEnd + detail
	}
	return text
}

// SplitStateMessage takes a message of StateMessage apart, for a door that has its own sentences for the states. ok is
// false for any other message.
func SplitStateMessage(message string) (found Found, name, detail string, ok bool) {
	state, rest, cut := strings.Cut(message, foundEnd)
	switch found = Found(state); found {
	case FoundAlreadyRunning, FoundNotRunning, FoundStillRunning:
		name, detail, _ = strings.Cut(rest, nameEnd)
		return found, name, detail, cut && name != ""
	}
	return "", "", "", false
}
