package delivery

import "time"

// EventKind names what can happen to an attempt.
type EventKind uint8

// The events. An event that ends in "Due" comes from the timer (see Attempt.dueEvent). Those about the record come
// with the answer to a write, so other events may have come first.
const (
	AddedPending    EventKind = iota // accepted, or found in the record, as pending
	AddedDispatched                  // accepted as dispatched in the agent's present session
	FoundDispatched                  // found in the record: an earlier run of the server dispatched it
	FoundUnknown                     // found in the record as unknown

	Dispatched    // the record has it as dispatched in a session
	NotDispatched // the record did not take the dispatch
	TurnToSend    // its turn has come, and its session is the agent's
	SessionEnded  // its turn has come, and the agent has another session or none
	Returned      // the record has it as pending again: it was not sent in the session that ended
	NotReturned   // the record did not take that
	Acknowledged  // the agent reports that it has the operation
	Requeued      // the record has it as pending again: a HELLO proved that it never began
	AgentSilent   // the lease of the agent's session is over
	CancelAsked   // its caller cancels it

	ReleaseDue // it waits and its agent is online
	WaitDue    // it waits, its agent is offline, and it may wait longer
	ExpiryDue  // it waits, its agent is offline, and its time is over
	Superseded // it waits, and so does a newer operation that makes it pointless
	LateDue    // the agent has not answered as soon as most do
	RepeatDue  // the agent has not answered
	CheckDue   // there is nothing to do before the deadline
	RecallDue  // its caller cancelled it before it was sent, and the record has not answered
	GiveUpDue  // its deadline is over, or its agent is offline and may not have it
	CancelDue  // it is unknown, and the agent has not answered
	KeepDue    // it is unknown for longer than results are kept

	GivenUp    // the record has it as unknown
	NotGivenUp // the record did not take that
	Settled    // the record has its verdict
	NotSettled // the record did not take a verdict of this server
	LetGo      // its agent has a session with another server
	numEvents
)

var eventNames = [numEvents]string{"AddedPending", "AddedDispatched", "FoundDispatched", "FoundUnknown",
	"Dispatched", "NotDispatched", "TurnToSend", "SessionEnded", "Returned", "NotReturned", "Acknowledged", "Requeued",
	"AgentSilent", "CancelAsked", "ReleaseDue", "WaitDue", "ExpiryDue", "Superseded", "LateDue", "RepeatDue", "CheckDue", "RecallDue", "GiveUpDue",
	"CancelDue", "KeepDue", "GivenUp", "NotGivenUp", "Settled", "NotSettled", "LetGo"}

func (k EventKind) String() string { return eventNames[k] }

// Events lists all kinds of events.
func Events() []EventKind { return kindsFrom(AddedPending) }

// Event is something that happened to an attempt.
type Event struct {
	Kind     EventKind
	Session  uint64    // of Dispatched
	Deadline time.Time // of Dispatched
	Expires  time.Time // of Returned
	Sent     time.Time // of TurnToSend
}

// Effects are what a transition asks for. At most one of the schedules is among them.
type Effects uint32

// The effects.
const (
	Send      Effects = 1 << iota // send the operation to the agent
	SendBack                      // record it as pending again, if it is still dispatched in its session
	GiveUp                        // record it as unknown, if it is still dispatched in its session
	Cancel                        // ask the agent to cancel it, in the session in which it was sent
	Release                       // dispatch what waits for its agent
	Withdraw                      // record that it was not executed: the host did not come back in time
	Supersede                     // record that it was not executed: a newer operation takes its place
	Interrupt                     // record that it was interrupted: the host never came back
	Recall                        // record that it was not executed: its caller cancelled it, and nothing was sent

	ScheduleNow
	ScheduleRelease  // now when the agent is online, else when it expires
	ScheduleExpiry   // when it expires
	ScheduleResend   // after the shortest pause between repeats
	ScheduleLate     // when most operations are answered, at most until the deadline
	ScheduleRepeat   // after the pause that answers take, longer with each repeat, at most until the deadline
	ScheduleDeadline // at its deadline

	Impossible // the event excludes the state: a mistake in this package

	schedules = ScheduleNow | ScheduleRelease | ScheduleExpiry | ScheduleResend | ScheduleLate | ScheduleRepeat | ScheduleDeadline
)

var effectNames = []string{"send", "send back", "give up", "cancel", "release", "withdraw", "supersede", "interrupt", "recall",
	"look now", "look at release", "look at expiry", "look after a pause", "look when it is late", "look after a growing pause",
	"look at deadline", "impossible"}

// Has reports whether one of x is among the effects.
func (f Effects) Has(x Effects) bool { return f&x != 0 }

// String lists the effects, for DESIGN.md and tests.
func (f Effects) String() string {
	s := ""
	for i, name := range effectNames {
		if f.Has(1 << i) {
			if s != "" {
				s += ", "
			}
			s += name
		}
	}
	return s
}
