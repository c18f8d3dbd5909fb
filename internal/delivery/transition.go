package delivery

import (
	"slices"
	"time"
)

// rule says what an event does in some states. Every pair of state and event has exactly one rule; a test counts.
type rule struct {
	on   []EventKind
	in   []State
	to   State   // stay, or the next state
	do   Effects // Impossible alone: the pair cannot happen
	note string  // why nothing happens; empty where something does
}

// stay is the state of a rule that leaves the state as it is.
const stay = numStates

var (
	added      = []EventKind{AddedPending, AddedDispatched, FoundDispatched, FoundUnknown}
	open       = []State{Waiting, Queued, Stale, Recalled, Sent, Repeated, Received, Unknown}
	dispatched = []State{Queued, Stale, Sent, Repeated, Received}
)

// rules are the state machine of an attempt.
var rules = slices.Concat(addRules, sendRules, dueRules, recallRules, endRules)

// How an attempt comes into the tables.
var addRules = []rule{
	{on: []EventKind{AddedPending}, in: []State{Created}, to: Waiting, do: ScheduleRelease},
	{on: []EventKind{AddedDispatched}, in: []State{Created}, to: Queued, do: ScheduleDeadline},
	{on: []EventKind{FoundDispatched}, in: []State{Created}, to: Stale, do: ScheduleDeadline},
	{on: []EventKind{FoundUnknown}, in: []State{Created}, to: Unknown, do: ScheduleDeadline},
	{on: added, in: open, to: stay, do: Impossible, note: "an attempt is added once"},
	{on: kindsFrom(Dispatched), in: []State{Created}, to: stay, do: Impossible, note: "it is not in the tables yet"},
	{on: kindsFrom(AddedPending), in: []State{Final}, to: stay, note: "a verdict never changes"},
	{on: kindsFrom(AddedPending), in: []State{Elsewhere}, to: stay, note: "another server decides"},
}

// How an attempt reaches its agent.
var sendRules = []rule{
	{on: []EventKind{Dispatched}, in: []State{Waiting}, to: Queued, do: ScheduleDeadline},
	{on: []EventKind{Dispatched}, in: []State{Queued, Stale, Recalled, Sent, Repeated, Received, Unknown}, to: stay,
		do: Impossible, note: "the record dispatches pending attempts only"},
	{on: []EventKind{NotDispatched}, in: []State{Waiting}, to: stay, do: ScheduleResend},
	{on: []EventKind{NotDispatched}, in: []State{Queued, Stale, Recalled, Sent, Repeated, Received, Unknown}, to: stay,
		note: "it does not wait any more"},

	{on: []EventKind{TurnToSend}, in: []State{Queued}, to: Sent, do: Send | ScheduleLate},
	{on: []EventKind{SessionEnded}, in: []State{Queued}, to: Stale, do: SendBack},
	{on: []EventKind{TurnToSend, SessionEnded}, in: []State{Waiting, Stale, Recalled, Sent, Repeated, Received, Unknown},
		to: stay, note: "it left the queue before its turn"},

	{on: []EventKind{Returned}, in: []State{Stale, Received}, to: Waiting, do: ScheduleRelease},
	{on: []EventKind{Returned}, in: []State{Waiting, Queued, Recalled, Sent, Repeated, Unknown}, to: stay, do: Impossible,
		note: "the record returns what is dispatched in the session that ended only"},
	{on: []EventKind{NotReturned}, in: []State{Stale}, to: stay, do: ScheduleResend},
	{on: []EventKind{NotReturned}, in: []State{Waiting, Queued, Recalled, Sent, Repeated, Received, Unknown}, to: stay,
		note: "a HELLO or the deadline came first"},

	{on: []EventKind{Acknowledged}, in: []State{Stale, Sent, Repeated, Received}, to: Received},
	{on: []EventKind{Acknowledged}, in: []State{Waiting, Queued, Recalled}, to: stay,
		note: "it was not sent; the agent says so again when it gets it"},
	{on: []EventKind{Acknowledged}, in: []State{Unknown}, to: stay, note: "CANCEL is repeated until the verdict"},

	{on: []EventKind{Requeued}, in: dispatched, to: Waiting, do: ScheduleRelease},
	{on: []EventKind{Requeued}, in: []State{Recalled}, to: Waiting, do: ScheduleRelease},
	{on: []EventKind{Requeued}, in: []State{Waiting}, to: stay, note: "it waits already"},
	{on: []EventKind{Requeued}, in: []State{Unknown}, to: stay, do: Impossible,
		note: "the record requeues dispatched attempts only"},
}

// What the timer and the lease of a session lead to.
var dueRules = []rule{
	{on: []EventKind{AgentSilent}, in: []State{Queued, Stale, Sent, Repeated}, to: stay, do: ScheduleNow},
	{on: []EventKind{AgentSilent}, in: []State{Waiting}, to: stay, note: "it waits until it expires"},
	{on: []EventKind{AgentSilent}, in: []State{Recalled}, to: stay, note: "its verdict needs no agent"},
	{on: []EventKind{AgentSilent}, in: []State{Received}, to: stay, note: "the agent works on it until the deadline"},
	{on: []EventKind{AgentSilent}, in: []State{Unknown}, to: stay, note: "the next contact decides"},

	{on: []EventKind{ReleaseDue}, in: []State{Waiting}, to: stay, do: Release | ScheduleResend},
	{on: []EventKind{WaitDue}, in: []State{Waiting}, to: stay, do: ScheduleExpiry},
	{on: []EventKind{ExpiryDue}, in: []State{Waiting}, to: stay, do: Withdraw},
	{on: []EventKind{Superseded}, in: []State{Waiting}, to: stay, do: Supersede},
	{on: []EventKind{ReleaseDue, WaitDue, ExpiryDue, Superseded}, in: []State{Queued, Stale, Recalled, Sent, Repeated,
		Received, Unknown}, to: stay, do: Impossible, note: "it does not wait"},

	{on: []EventKind{LateDue}, in: []State{Sent}, to: Repeated, do: ScheduleRepeat},
	{on: []EventKind{LateDue}, in: []State{Waiting, Queued, Stale, Recalled, Repeated, Received, Unknown}, to: stay, do: Impossible,
		note: "only an operation that was just sent becomes late"},
	{on: []EventKind{RepeatDue}, in: []State{Repeated}, to: stay, do: Send | ScheduleRepeat},
	{on: []EventKind{RepeatDue}, in: []State{Waiting, Queued, Stale, Recalled, Sent, Received, Unknown}, to: stay, do: Impossible,
		note: "only an operation whose answer is late is repeated"},
	{on: []EventKind{CheckDue}, in: []State{Queued, Stale, Received}, to: stay, do: ScheduleDeadline},
	{on: []EventKind{CheckDue}, in: []State{Waiting, Recalled, Sent, Repeated, Unknown}, to: stay, do: Impossible,
		note: "there is always something to do"},

	{on: []EventKind{GiveUpDue}, in: dispatched, to: stay, do: GiveUp},
	{on: []EventKind{GiveUpDue}, in: []State{Waiting, Recalled, Unknown}, to: stay, do: Impossible,
		note: "only what is dispatched and not recalled is given up"},
	{on: []EventKind{CancelDue}, in: []State{Unknown}, to: stay, do: Cancel | ScheduleRepeat},
	{on: []EventKind{KeepDue}, in: []State{Unknown}, to: stay, do: Interrupt},
	{on: []EventKind{CancelDue, KeepDue}, in: []State{Waiting, Queued, Stale, Recalled, Sent, Repeated, Received}, to: stay,
		do: Impossible, note: "it is not unknown"},
}

// What a caller that cancels leads to. What was sent runs on, and gets its true verdict.
var recallRules = []rule{
	{on: []EventKind{CancelAsked}, in: []State{Waiting}, to: stay, do: Recall},
	{on: []EventKind{CancelAsked}, in: []State{Queued}, to: Recalled, do: Recall},
	{on: []EventKind{CancelAsked}, in: []State{Stale}, to: stay, do: GiveUp}, // it may have been sent; it is not sent again
	{on: []EventKind{CancelAsked}, in: []State{Recalled}, to: stay, note: "its verdict is on its way"},
	{on: []EventKind{CancelAsked}, in: []State{Sent, Repeated, Received, Unknown}, to: stay, note: "it was sent"},

	{on: []EventKind{RecallDue}, in: []State{Recalled}, to: stay, do: Recall},
	{on: []EventKind{RecallDue}, in: []State{Waiting, Queued, Stale, Sent, Repeated, Received, Unknown}, to: stay,
		do: Impossible, note: "it is not recalled"},
}

// How an attempt ends.
var endRules = []rule{
	{on: []EventKind{GivenUp}, in: dispatched, to: Unknown, do: ScheduleNow},
	{on: []EventKind{GivenUp}, in: []State{Recalled}, to: Unknown, do: ScheduleNow}, // the deadline came first
	{on: []EventKind{GivenUp}, in: []State{Waiting, Unknown}, to: stay, do: Impossible,
		note: "the record gives up dispatched attempts only"},
	{on: []EventKind{NotGivenUp}, in: []State{Sent}, to: Repeated, do: ScheduleResend},
	{on: []EventKind{NotGivenUp}, in: []State{Queued, Stale, Repeated, Received}, to: stay, do: ScheduleResend},
	{on: []EventKind{NotGivenUp}, in: []State{Waiting, Recalled, Unknown}, to: stay, note: "a HELLO or its caller came first"},

	{on: []EventKind{Settled}, in: open, to: Final},
	{on: []EventKind{NotSettled}, in: []State{Waiting, Recalled, Unknown}, to: stay, do: ScheduleResend},
	{on: []EventKind{NotSettled}, in: dispatched, to: stay, note: "it was dispatched meanwhile"},
	{on: []EventKind{LetGo}, in: open, to: Elsewhere},
}

// kindsFrom lists an event and all after it.
func kindsFrom(first EventKind) (kinds []EventKind) {
	for k := first; k < numEvents; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// step is what one event does in one state.
type step struct {
	to State
	do Effects
}

var table = makeTable()

func makeTable() (t [numStates][numEvents]step) {
	for _, r := range rules {
		for _, s := range r.in {
			for _, e := range r.on {
				t[s][e] = step{r.to, r.do}
				if r.to == stay {
					t[s][e].to = s
				}
			}
		}
	}
	return t
}

// Next gives the state after an event and what is to be done. It is the whole state machine.
func Next(s State, e EventKind) (State, Effects) {
	st := table[s][e]
	return st.to, st.do
}

// transition applies an event. Nothing else changes the state of an attempt, its session or its times.
func (a *Attempt) transition(e Event) Effects {
	next, do := Next(a.state, e.Kind)
	switch {
	case next == a.state: // what was not moved keeps its session and times
	case e.Kind == Dispatched:
		a.session, a.deadline, a.tries, a.sentAt = e.Session, e.Deadline, 0, time.Time{}
	case e.Kind == Returned:
		a.session, a.expires = 0, e.Expires
	case e.Kind == Requeued:
		a.session, a.expires = 0, a.deadline
	case e.Kind == TurnToSend:
		a.sentAt = e.Sent
	case e.Kind == GivenUp:
		a.tries, a.unsent = 0, a.state == Queued || a.state == Recalled
	}

	if e.Kind == RepeatDue || e.Kind == CancelDue {
		a.tries++
	}

	a.state = next
	return do
}
