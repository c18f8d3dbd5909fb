package gozzard

// The decisions of the delivery protocol (docs/architecture.md, "Delivery"). They are pure so that the server, the
// agent and the exhaustive test of the protocol run the very same functions.

// Phase is how far an operation is, as its agent knows. The order is the order of life.
type Phase uint8

// The phases.
const (
	PhaseAbsent      Phase = iota // the agent has never heard of it, or forgot it in a crash before it began
	PhaseQueued                   // accepted, waiting for its turn; only in memory
	PhaseBegun                    // INTENT is on disk, the effect may have happened and the agent works on it
	PhaseDone                     // the effect happened once, its outcome is on disk
	PhaseInterrupted              // INTENT was on disk when the agent died; never run again by itself
	PhaseNever                    // tombstone: it did not and will not run
)

func (p Phase) String() string {
	names := [...]string{"absent", "queued", "begun", "done", "interrupted", "never"}
	if int(p) < len(names) {
		return names[p]
	}
	return "invalid" // phases come from agents
}

// AttemptState is where an attempt stands in the record.
type AttemptState uint8

// The states of an attempt. The last four are final and never change.
const (
	AttemptPending     AttemptState = iota + 1 // accepted, not sent in any session
	AttemptDispatched                          // recorded as sent in one session; it may or may not have arrived
	AttemptUnknown                             // its time is over and the agent has not answered
	AttemptOK                                  // the effect happened once and succeeded
	AttemptFailed                              // the effect happened once and failed, or was refused after it began
	AttemptNotExecuted                         // it did not happen and never will
	AttemptInterrupted                         // it happened at most once
)

func (s AttemptState) String() string {
	names := [...]string{"", "pending", "dispatched", "unknown", "ok", "failed", "not_executed", "interrupted"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// Final states never change.
func (s AttemptState) Final() bool { return s >= AttemptOK }

// Sources lists the states from which an attempt may become s: the condition of every compare-and-set on the
// record. Withdrawing an attempt that was not sent (superseded, expired) has a stricter condition, Pending alone:
// another server may have sent it meanwhile.
func (s AttemptState) Sources() []AttemptState {
	switch s {
	case AttemptPending: // requeue, only by Reconcile
		return []AttemptState{AttemptDispatched}
	case AttemptDispatched:
		return []AttemptState{AttemptPending}
	case AttemptUnknown:
		return []AttemptState{AttemptDispatched}
	case AttemptOK, AttemptFailed, AttemptInterrupted:
		return []AttemptState{AttemptDispatched, AttemptUnknown}
	case AttemptNotExecuted:
		return []AttemptState{AttemptPending, AttemptDispatched, AttemptUnknown}
	}
	return nil
}

// MaxSessionStep is how far a session may be above the one before. An agent counts its sessions one by one, so only a
// record that was lost or is an older copy, or an agent that makes numbers up, brings a large step. Without a bound one
// message could bring the number to its end, and the agent of that host could never open a session again.
const MaxSessionStep = 1 << 32

// MayOpenSession is the server's fence on HELLO: a session is registered only when it is newer than every one seen
// of that agent, and not absurdly newer.
func MayOpenSession(registered, hello uint64) bool {
	return hello > registered && hello-registered <= MaxSessionStep
}

// MaxGen is the newest generation that a server believes of an agent. It is far above every number that a server gives
// out, and leaves as many again before the end of 63 bits.
const MaxGen = 1 << 62

// LiftBase gives what a server adds to the numbers of tasks to make the generations of one agent. The counter of tasks
// is behind when the agent had another server before, or when the record was lost or replaced by an older copy. The
// agent would reject every new operation then. So after a HELLO the base is such that the next task has a newer
// generation than the agent has on record. An older task does not get one: the agent may have executed a task of its
// number before.
//
// The base belongs to one agent, so an agent that makes numbers up has large numbers itself and changes nothing for the
// others. The lift is part of the transaction that registers the session.
func LiftBase(counter, base, newest uint64) uint64 {
	if newest > MaxGen || newest <= counter+base {
		return base
	}
	return newest - counter
}

// Admission is what an agent does with an operation that arrives.
type Admission uint8

// The admissions.
const (
	AdmitQueue  Admission = iota + 1 // accept it
	AdmitAnswer                      // known already: answer with its phase
	// of another session, or the lease is over: say nothing, the server will reconcile
	AdmitRefuseSession
	// a newer intent for that process was accepted: write a tombstone and answer "never"
	AdmitRefuseOld
)

// AgentView is what an agent knows when an operation arrives.
type AgentView struct {
	Session   uint64 // current, durable before HELLO
	Leased    bool   // the server was heard within the lease
	Phase     Phase  // of this operation id
	NewestGen uint64 // the newest generation accepted for this process, queued ones included
}

// Admit decides about an operation that arrives in a session with a generation. Read-only operations have no place
// in the order of intents.
func Admit(st AgentView, session, gen uint64, readOnly bool) Admission {
	switch {
	case session != st.Session || !st.Leased:
		return AdmitRefuseSession
	case st.Phase != PhaseAbsent:
		return AdmitAnswer
	case !readOnly && gen <= st.NewestGen:
		return AdmitRefuseOld
	}
	return AdmitQueue
}

// MayBegin is checked right before INTENT is written: a cancelled operation never begins.
func MayBegin(p Phase) bool { return p == PhaseQueued }

// OnCancel gives the phase after a CANCEL: what has not begun never will.
func OnCancel(p Phase) Phase {
	if p == PhaseAbsent || p == PhaseQueued {
		return PhaseNever
	}
	return p
}

// OnRecovery gives the phase of an operation found in the journal when an agent starts: what was begun and not done
// was interrupted.
func OnRecovery(p Phase) Phase {
	if p == PhaseBegun {
		return PhaseInterrupted
	}
	return p
}

// Finalise gives the state that a report of an agent about an attempt leads to; ok is false when the report decides
// nothing.
func Finalise(p Phase, code Code) (state AttemptState, ok bool) {
	switch p {
	case PhaseDone:
		switch code {
		case CodeOK:
			return AttemptOK, true
		case CodeSuperseded, CodeExpired, CodeUnreachable:
			return AttemptNotExecuted, true
		}
		return AttemptFailed, true
	case PhaseInterrupted:
		return AttemptInterrupted, true
	case PhaseNever:
		return AttemptNotExecuted, true
	}
	return 0, false
}

// Contact is what a HELLO says about one attempt that was dispatched in an older session.
type Contact struct {
	Session     uint64 // of the HELLO
	Phase       Phase  // of the attempt's operation in the agent's list of open ones
	SameJournal bool   // SameJournal of the attempt: absence proves that nothing began
}

// Reconcile decides about an attempt when its agent opens a session. next is the state to set (its Sources are the
// condition), ok is false when the attempt stays as it is.
func Reconcile(state AttemptState, dispatched uint64, deadlinePassed bool, c Contact, code Code) (next AttemptState,
	ok bool) {
	if state != AttemptDispatched && state != AttemptUnknown || dispatched >= c.Session {
		return 0, false
	}
	if next, ok := Finalise(c.Phase, code); ok {
		return next, true
	}
	if c.Phase != PhaseAbsent { // queued or begun: the agent works on it and will report
		return 0, false
	}
	if !c.SameJournal {
		return AttemptInterrupted, true
	}
	if state == AttemptDispatched && !deadlinePassed {
		return AttemptPending, true
	}

	return AttemptNotExecuted, true
}

// JournalSince gives the first session in which an agent had the journal that it greets with: the one recorded
// while the journal is known and has not gone back, else the session of this HELLO. It is recorded in the transaction
// that registers the session, because a server may stop between that and the reconciliation, and its next run must
// still know that the journal changed.
func JournalSince(known JournalPos, since uint64, hello JournalPos, session uint64) uint64 {
	if known.ID == hello.ID && hello.LSN >= known.LSN {
		return since
	}
	return session
}

// SameJournal reports whether an agent still has the journal under which an attempt was dispatched. Where it does
// not, the agent's "never heard of it" proves nothing: the attempt is not cancelled but left to Reconcile.
func SameJournal(dispatched, journalSince uint64) bool { return dispatched >= journalSince }
