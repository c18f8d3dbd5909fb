package gozzard_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// The servers of the protocol model.

const pendingOnly = 0xff // decision.session of a withdrawal

// serverSteps lists what servers may do: read, decide and act at once; or read, decide and act much later.
func (m *model) serverSteps(w *world) {
	fresh := network{}
	m.send(w, &fresh)

	m.acceptNext(w)
	m.replaceRecord(w)

	for i := range m.ops {
		m.decideByRow(w, i)
		m.decideByResult(w, &fresh, i)
	}

	for c := 1; c <= int(w.connects); c++ {
		for shape := range w.net.shapes(c) {
			isFresh := fresh.hello[c][shape/64]&(1<<(shape%64)) != 0
			m.openSession(w, c, isFresh)
			m.decideByHello(w, c, shape, isFresh)
		}
	}

	for k := range m.slots {
		if d := w.slots[k]; d.kind != decideNothing {
			next := *w
			next.slots[k] = decision{}
			m.carryOut(&next, d)
			m.emit(w, next, false, act{verb: "acts", op: -1, slow: true, d: d}, "")
		}
	}
}

// acceptNext covers the acceptance of an operation while others are under way.
func (m *model) acceptNext(w *world) {
	for i := range m.ops {
		if w.rows[i].state != 0 || w.gone&(1<<i) != 0 {
			continue
		}

		next := *w
		m.acceptInto(&next, i)
		if w.registered > 0 {
			next.promised |= 1 << i
		}
		m.emit(w, next, true, act{verb: "accept", op: int8(i)}, "")
		return
	}
}

// acceptInto records an operation. Its number and the base make its generation.
func (m *model) acceptInto(w *world, op int) {
	w.counter++
	w.gens[op] = w.counter
	if !m.intact(numbersInOrder) { // it was drawn before
		w.gens[op] = uint8(op + 1)
	}
	w.rows[op] = row{state: gozzard.AttemptPending}
}

// replaceRecord covers a new server that takes the place of all others: with an empty record, or with an older copy that
// has verdicts only. Its counter and its base are those of the copy. The connections of the others end with them, and so does what was
// on its way to them; what they have sent may still arrive.
func (m *model) replaceRecord(w *world) {
	if int(w.replaced) >= m.replaced || int(w.connects) >= m.connects {
		return
	}

	for copied := range (int(w.counter) + 1) * (int(w.base) + 1) {
		next := *w
		for i := range m.ops {
			if w.rows[i].state != 0 {
				next.rows[i] = row{}
				next.gone |= 1 << i
			}
		}
		next.counter, next.base = uint8(copied%(int(w.counter)+1)), uint8(copied/(int(w.counter)+1))
		next.promised, next.registered = 0, 0
		next.known, next.since, next.slots = journalPos{}, 0, [maxSlots]decision{}
		next.net.hello, next.net.result = network{}.hello, network{}.result
		next.greeted = world{}.greeted
		next.replaced++
		m.connect(&next)
		m.emit(w, next, false, act{verb: "the record is replaced, reconnect as", op: -1, num: int(next.session)}, "")
	}
}

// asks has, for each state of an attempt in the record, what the state machine of package delivery may ask for in the
// states that stand for it. The servers of the model do that, and nothing else.
var asks = func() (of [gozzard.AttemptInterrupted + 1]delivery.Effects) {
	for _, s := range delivery.States() {
		for _, e := range delivery.Events() {
			if next, do := delivery.Next(s, e); next.Record() != 0 && !do.Has(delivery.Impossible) {
				of[next.Record()] |= do
			}
		}
	}
	return of
}()

// decideByRow covers the decisions from a row of the record: dispatch, withdrawal of an attempt that is superseded or
// waited too long, and the deadline. The end of an attempt that is unknown for longer than agents keep results is not
// covered, because it depends on time.
func (m *model) decideByRow(w *world, op int) {
	r := w.rows[op]
	do := asks[r.state]
	if do.Has(delivery.Release) && w.registered > 0 {
		m.decide(w, "dispatch", op, true, decision{kind: decideDispatch, op: uint8(op), session: w.registered})
	}

	withdraw := decision{kind: decideWithdraw, op: uint8(op), to: gozzard.AttemptNotExecuted, session: pendingOnly}
	switch {
	case do.Has(delivery.Supersede) && m.superseded(op):
		m.decide(w, "supersede", op, true, withdraw)
	case do.Has(delivery.Withdraw):
		m.decide(w, "expire or cancel", op, false, withdraw) // nothing that progress may rest on
	}

	if do.Has(delivery.GiveUp) {
		m.decide(w, "deadline", op, true, decision{kind: decideSettle, op: uint8(op), to: gozzard.AttemptUnknown,
			session: r.session})
	}
}

func (m *model) superseded(op int) bool {
	for newer := op + 1; newer < m.ops; newer++ {
		if m.action(newer).Supersedes(m.action(op)) {
			return true
		}
	}
	return false
}

// decideByResult covers a RESULT that arrives.
func (m *model) decideByResult(w *world, fresh *network, op int) {
	for d, isFresh := range w.results(fresh, op) {
		m.decide(w, "RESULT of", op, isFresh, d)
	}
}

// results lists what each RESULT of an operation that may arrive decides, and whether it is one that is sent now.
func (w *world) results(fresh *network, op int) iter.Seq2[decision, bool] {
	return func(yield func(decision, bool) bool) {
		for _, at := range []uint8{atDone, atInterrupted, atNever} {
			if w.net.result[op]&(1<<at) == 0 {
				continue
			}
			to, ok := gozzard.Finalise(phaseAt[at], opCode[op])
			if ok && !yield(decision{kind: decideSettle, op: uint8(op), to: to}, fresh.result[op]&(1<<at) != 0) {
				return
			}
		}
	}
}

// openSession covers a HELLO that arrives: the session, the journal, since when it is that journal and the base are one
// transaction.
func (m *model) openSession(w *world, connect int, fresh bool) {
	hello := w.greeted[connect]
	if !m.mayOpen(w, hello.session) {
		return
	}

	next := *w
	next.register(hello)
	if m.intact(baseLifted) {
		next.base = uint8(gozzard.LiftBase(uint64(w.counter), uint64(w.base), uint64(hello.newest)))
	}
	m.emit(w, next, fresh, act{verb: "HELLO opens session", op: -1, num: int(hello.session)}, "")
}

// register records the session of a HELLO, its journal, and since when it is that journal.
func (w *world) register(hello greeting) {
	w.since = uint8(gozzard.JournalSince(w.known.real(), uint64(w.since), hello.journal.real(), uint64(hello.session)))
	w.registered, w.known = hello.session, hello.journal
}

// mayOpen reports whether the record registers a session.
func (m *model) mayOpen(w *world, session uint8) bool {
	registered := uint64(w.registered)
	if !m.intact(registerIfGreater) {
		registered = 0
	}
	return gozzard.MayOpenSession(registered, uint64(session))
}

// decideByHello covers reconciliation. Every server that receives the HELLO of the registered session does it, so a
// server that dies half-way does no harm.
func (m *model) decideByHello(w *world, connect, shape int, fresh bool) {
	if w.greeted[connect].session != w.registered {
		return
	}

	for op := range m.ops {
		for _, late := range []bool{false, true} {
			if to, ok := m.reconcile(w, connect, shape, op, late); ok {
				from := w.rows[op].session
				if !m.intact(settleFromSession) {
					from = 0
				}
				m.decide(w, "HELLO reconciles", op, fresh,
					decision{kind: decideSettle, op: uint8(op), to: to, session: from})
			}
		}
	}
}

func (m *model) reconcile(w *world, connect, shape, op int, late bool) (gozzard.AttemptState, bool) {
	r := w.rows[op]
	same := gozzard.SameJournal(uint64(r.session), uint64(w.since))
	// Compare with the journal in the record. This HELLO may have recorded it.
	if !m.intact(journalSinceSession) {
		same = w.known == w.greeted[connect].journal
	}
	c := gozzard.Contact{Session: uint64(w.greeted[connect].session), Phase: phaseOfShape(shape, op), SameJournal: same}
	return gozzard.Reconcile(r.state, uint64(r.session), late, c, opCode[op])
}

// decide makes the prompt server act at once and a slow server remember its decision.
func (m *model) decide(w *world, verb string, op int, helpful bool, d decision) {
	next := *w
	moved := m.carryOut(&next, d)
	m.emit(w, next, helpful, act{verb: verb, op: int8(op), d: d}, m.brokenByVerdict(w, d, moved))
	for k := range m.slots {
		if k > 0 && w.slots[k] == w.slots[0] {
			continue
		}
		held := *w
		held.slots[k] = d
		m.emit(w, held, false, act{verb: verb, op: int8(op), slow: true}, "")
	}
}

// brokenByVerdict returns which promise a write breaks. A report of the agent that the record does not take has its
// verdict there already: so it may be acknowledged by any server, whether or not it holds the attempt.
func (m *model) brokenByVerdict(w *world, d decision, moved bool) string {
	if d.kind == decideSettle && d.session == 0 && d.to.Final() && !moved && !w.rows[d.op].state.Final() &&
		w.rows[d.op].state != 0 {
		return "the record does not take a verdict and has none"
	}
	return ""
}

// carryOut is the compare-and-set of the record, as control.Store promises it. A change of the record is an event for
// the state machine of package delivery.
func (m *model) carryOut(w *world, d decision) (moved bool) {
	r := &w.rows[d.op]
	before := r.state
	switch d.kind {
	case decideAccept:
		return m.carryOutAccept(w, d)
	case decideDispatch:
		if slices.Contains(gozzard.AttemptDispatched.Sources(), r.state) &&
			(w.registered == d.session || !m.intact(dispatchAtHome)) {
			*r = row{state: gozzard.AttemptDispatched, session: d.session}
		}
		if !m.intact(casBeforeSend) { // send whether or not the row was ours to send
			w.net.op[d.op] |= 1 << d.session
		}
	case decideSettle:
		if slices.Contains(d.to.Sources(), r.state) && (d.session == 0 || r.session == d.session) {
			r.state = d.to
		}
	case decideWithdraw:
		if r.state == gozzard.AttemptPending || !m.intact(withdrawOnlyPending) &&
			slices.Contains(d.to.Sources(), r.state) {
			r.state = d.to
		}
	}

	if before != r.state {
		m.follow(before, d.event(), r.state)
	}
	return before != r.state
}

// carryOutAccept records an operation. Numbers are given out in the order of commits, so the transaction sees every
// older attempt.
func (m *model) carryOutAccept(w *world, d decision) (moved bool) {
	if w.rows[d.op].state != 0 {
		return false
	}
	ready := true
	for older := range d.op {
		if w.rows[older].state == gozzard.AttemptPending && m.intact(readyToBear) {
			ready = false
		}
	}

	m.acceptInto(w, int(d.op))
	state, session := gozzard.Birth(uint64(d.session), ready)
	w.rows[d.op] = row{state, uint8(session)}
	return true
}

// event is the event of the state machine after the record has accepted a decision.
func (d decision) event() delivery.EventKind {
	switch {
	case d.kind == decideDispatch:
		return delivery.Dispatched
	case d.to == gozzard.AttemptUnknown:
		return delivery.GivenUp
	case d.to == gozzard.AttemptPending:
		return delivery.Requeued
	}
	return delivery.Settled
}

// follow compares a change of a row with the state machine: from every state that stands for the row before, the event
// must lead to a state that stands for the row after.
func (m *model) follow(before gozzard.AttemptState, e delivery.EventKind, after gozzard.AttemptState) {
	if m.moves[before][e] {
		return
	}
	m.moves[before][e] = true

	for _, s := range delivery.States() {
		if s.Record() != before {
			continue
		}
		next, do := delivery.Next(s, e)
		follows := next.Record() == after || next == delivery.Final && after.Final()
		if (!follows || do.Has(delivery.Impossible)) && m.disagrees == "" {
			m.disagrees = fmt.Sprintf("a row went from %v to %v by %v; from %v the state machine goes to %v (%v)", before,
				after, e, s, next, do)
		}
	}
}

// serverSends adds what servers repeat until it is answered. The HELLO that is answered is one in net.
func (m *model) serverSends(w *world, net *network) {
	for i := range m.ops {
		r := w.rows[i]
		do := asks[r.state]
		if do.Has(delivery.Send) && r.state == gozzard.AttemptPending {
			r.session = w.registered // what a server that sends without a dispatch would do
		}
		if do.Has(delivery.Send) {
			net.op[i] |= 1 << r.session
		}
		if do.Has(delivery.Cancel) {
			if gozzard.SameJournal(uint64(r.session), uint64(w.since)) || !m.intact(cancelInSameJournal) {
				net.cancel[i] |= 1 << w.registered
			}
		}
	}

	for c := 1; c <= int(w.connects); c++ {
		if w.greeted[c].session != w.registered {
			continue
		}
		for shape := range net.shapes(c) {
			if m.settled(w, c, shape) {
				net.welcome |= 1 << w.registered
			}
		}
	}
}

// settled reports whether everything in a HELLO is recorded. Only then it is answered with Welcome and no longer
// repeated.
func (m *model) settled(w *world, connect, shape int) bool {
	for op := range m.ops {
		if _, ok := m.reconcile(w, connect, shape, op, false); ok {
			return false
		}
	}
	return true
}
