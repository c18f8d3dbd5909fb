package delivery

import "github.com/gozzard/gozzard"

// State says where an attempt is on its way, as far as this server knows. The record is the truth; a state only says
// what this server does next.
type State uint8

// The states of an attempt.
const (
	Created   State = iota // not in the tables of this server yet
	Waiting                // waits until its agent is ready for it
	Queued                 // recorded as sent in the agent's session; waits for its turn to be sent
	Stale                  // recorded as sent in a session in which this server does not send it
	Recalled               // its caller cancelled it before its turn: it is not sent, and its verdict is being recorded
	Sent                   // just sent and not answered; counts in the window
	Repeated               // sent more than once, or its answer is late; it makes no other attempt wait
	Received               // the agent has it and works on it
	Unknown                // its time is over; the agent is asked to cancel it or to say what became of it
	Final                  // it has its verdict and is out of the tables
	Elsewhere              // another server delivers it; it is out of the tables of this one
	numStates
)

var stateNames = [numStates]string{"created", "waiting", "queued", "stale", "recalled", "sent", "repeated", "received", "unknown",
	"final", "elsewhere"}

func (s State) String() string { return stateNames[s] }

// States lists all states.
func States() (list []State) {
	for s := Created; s < numStates; s++ {
		list = append(list, s)
	}
	return list
}

// Record is the state that the record has for an attempt in this state. It is 0 for Created, whose event says which one
// it is, for Final, which is one of four, and for Elsewhere, which says nothing about it.
func (s State) Record() gozzard.AttemptState {
	switch s {
	case Waiting:
		return gozzard.AttemptPending
	case Queued, Stale, Recalled, Sent, Repeated, Received:
		return gozzard.AttemptDispatched
	case Unknown:
		return gozzard.AttemptUnknown
	}
	return 0
}

// isOpen reports whether an attempt is in the tables.
func (s State) isOpen() bool { return s > Created && s < Final }

// inWindow reports whether an attempt counts in the window. A silent host leaves the window when most others would have
// answered, so it delays no other host.
func (s State) inWindow() bool { return s == Sent }

// inQuota reports whether an attempt counts for its app. One that was given up as unknown does not: a dead host must
// not block its app.
func (s State) inQuota() bool { return s >= Waiting && s <= Received }
