package gozzard

// The decisions of several servers that share one record (docs/adr, "Several servers"). They are pure, like those of
// delivery.go, and for the same reason.
//
// Every agent has at most one home: the server whose transaction registered the newest session of the agent. Only the
// home sends to it. A server that was the home goes on with what it believed until it looks into the record, so no
// decision here is safe because of the home alone: the session of the agent and the compare-and-sets are the fences.

// IsHome reports whether a server is the home of an agent. own is the newest session that this server itself
// registered, 0 for none; session is the one of the record, or of a message of the agent. Only the home answers
// heartbeats: the agent of a home that is gone must find that out.
func IsHome(own, session uint64) bool { return own != 0 && own == session }

// MaySend reports whether a server may send or cancel an attempt: only in a session that it registered itself, and only
// what the record has as dispatched in that session.
func MaySend(own, dispatched uint64) bool { return own != 0 && own == dispatched }

// Birth gives the state with which a server records an attempt that it accepts. The home may record it as dispatched, if
// it is ready: all that older sessions left open is decided, and the record has no older attempt on the agent as pending.
// Everywhere else the attempt waits until the home finds it.
func Birth(own uint64, ready bool) (state AttemptState, session uint64) {
	if own == 0 || !ready {
		return AttemptPending, 0
	}
	return AttemptDispatched, own
}

// Sighting is an open attempt as the home of its agent finds it in the record.
type Sighting struct {
	State   AttemptState
	Session uint64 // in which it was dispatched
	Held    bool   // the home has decided about it since the HELLO of its session
	Late    bool   // its deadline has passed
}

// Look is what a home does with an attempt that it finds in the record.
type Look uint8

// The results of a look.
const (
	LookLeave  Look = iota + 1 // another server is the home now: forget everything about the agent
	LookForget                 // it has its verdict: forget it
	LookHold                   // hold it as the record has it: dispatch, send or cancel it
	LookSettle                 // change it to the state given, if it still has the session that was read
)

// OnLook decides about an attempt when a server looks into the record, because it was woken or because it looks from
// time to time. registered is the agent's session in the record, read together with the attempt. It may be asked only
// after the HELLO of the session has decided about everything that was open then.
//
// So an attempt that was dispatched in an older session, and that the home does not hold, was recorded after that: by
// a server that still believed to be the home. The agent rejects the older session since its HELLO, so the attempt
// never began and never will.
func OnLook(own, registered uint64, s Sighting) (do Look, next AttemptState) {
	switch {
	case !IsHome(own, registered):
		return LookLeave, 0
	case s.State.Final():
		return LookForget, 0
	case s.State == AttemptPending, s.Held, MaySend(own, s.Session):
		return LookHold, 0
	case s.State == AttemptDispatched && !s.Late:
		return LookSettle, AttemptPending
	}
	return LookSettle, AttemptNotExecuted
}
