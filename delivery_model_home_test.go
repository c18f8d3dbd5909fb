package gozzard_test

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// The servers of worlds with homes: several servers share the record, and each has a memory.
//
// A server acts on its memory, which nobody brings up to date: it learns from the answers to its own writes, from HELLO,
// and from looks into the record. So every server may go on with what it believed long ago, a frozen one too. Wake-ups
// are no messages of the model, because a wake-up only makes its receiver look: one that is lost is a look that does not
// happen, a late one is a look at any later time, and nothing that must happen rests on one.
//
// Every message of the agent may reach every server. A server that is frozen takes no step and is needed for none: from
// every state the others alone must bring every attempt to its verdict.

const maxServers = 3

// home is the memory of one server about the agent.
type home struct {
	session uint8       // that it registered; 0: none
	since   uint8       // first session of the journal, as of then
	shape   uint8       // of the HELLO
	todo    uint8       // operations that the HELLO has not decided yet
	held    [maxOps]row // attempts in memory; state 0: not held
	queued  uint8       // in worlds with callers that cancel: held as dispatched in the session, and not sent in it
	recall  uint8       // a caller cancelled them while they were queued: they are not sent
	frozen  bool
}

// homeSteps lists what servers may do, and what may happen to them.
func (m *model) homeSteps(w *world) {
	fresh := network{}
	m.send(w, &fresh)

	for k := range m.servers {
		if w.servers[k].frozen {
			next := *w
			next.servers[k].frozen = false
			m.emit(w, next, false, m.actBy(w, k, "goes on", -1), "")
			continue
		}

		m.acceptAt(w, k)
		m.openSessionAt(w, &fresh, k)
		m.reconcileAt(w, k)
		m.lookAt(w, k)
		for op := range m.ops {
			m.decideAt(w, k, op)
			m.resultAt(w, &fresh, k, op)
			m.cancelAt(w, k, op)
		}
		m.stop(w, k)
	}

	m.sweep(w)
	m.lateWrites(w)
}

// actBy is a step of a server. It is named by its session, because servers that are alike change places.
func (m *model) actBy(w *world, k int, verb string, op int) act {
	return act{verb: verb, op: int8(op), by: w.servers[k].session + 1}
}

// acceptAt covers the acceptance of an operation by any server. The session is what the server believes when it drafts
// the operation.
func (m *model) acceptAt(w *world, k int) {
	for op := range m.ops {
		if w.rows[op].state != 0 {
			continue
		}
		m.write(w, k, "accepts", op, true, decision{kind: decideAccept, op: uint8(op), session: w.servers[k].session})
		if m.intact(numbersInOrder) {
			return
		}
	}
}

// openSessionAt covers a HELLO that reaches a server. A HELLO of a session that is registered opens nothing; if its home
// is gone, the agent opens another one, see findHomeSilent.
func (m *model) openSessionAt(w *world, fresh *network, k int) {
	for c := 1; c <= int(w.connects); c++ {
		for shape := range w.net.shapes(c) {
			hello := w.greeted[c]
			if !m.mayOpen(w, hello.session) {
				continue
			}

			// The transaction.
			next := *w
			next.register(hello)
			lost := next

			// The memory of the home.
			next.disown(k)
			next.servers[k] = home{session: hello.session, since: next.since, shape: uint8(shape),
				todo: m.toDecide(&w.servers[k])}
			isFresh := fresh.hello[c][shape/64]&(1<<(shape%64)) != 0
			a := m.actBy(w, k, "opens session", -1)
			a.num = int(hello.session)
			m.emit(w, next, isFresh, a, "")

			if int(w.lost) < m.lost { // the session is registered, and no server is its home
				lost.lost++
				a.verb = "registers, without an answer, session"
				m.emit(w, lost, false, a, "")
			}
		}
	}
}

// toDecide is what a home must decide by a HELLO: everything. A server that trusts its memory decides about what it
// holds only.
func (m *model) toDecide(before *home) (todo uint8) {
	for op := range m.ops {
		if m.intact(takeOver) || before.held[op].state != 0 {
			todo |= 1 << op
		}
	}
	return todo
}

// disown makes a server forget the writes whose answers it waits for.
func (w *world) disown(k int) {
	for i := range w.slots {
		if int(w.slots[i].by) == k+1 {
			w.slots[i].by = 0
		}
	}
}

// reconcileAt covers what a home does about open attempts after a HELLO: it reads them all, records what the HELLO
// decides, and holds the others.
func (m *model) reconcileAt(w *world, k int) {
	h := &w.servers[k]
	next, read := *w, false
	for op := range m.ops {
		if h.todo&(1<<op) == 0 || m.decideAtHello(w, k, op) {
			continue
		}
		read = true
		next.servers[k].todo &^= 1 << op
		next.servers[k].hold(op, w.rows[op].open())
	}

	if read {
		m.emit(w, next, true, m.actBy(w, k, "takes over what is open", -1), "")
	}
}

// decideAtHello covers the decision of a HELLO about one attempt. It reports false if the attempt stays as it is.
func (m *model) decideAtHello(w *world, k, op int) (decided bool) {
	h, r := &w.servers[k], w.rows[op]
	c := gozzard.Contact{Session: uint64(h.session), Phase: phaseOfShape(int(h.shape), op),
		SameJournal: gozzard.SameJournal(uint64(r.session), uint64(h.since))}
	for _, late := range []bool{false, true} {
		to, ok := gozzard.Reconcile(r.state, uint64(r.session), late, c, opCode[op])
		if !ok {
			continue
		}
		decided = true
		d := decision{kind: decideSettle, op: uint8(op), to: to, session: r.session}
		if !m.intact(settleFromSession) {
			d.session = 0
		}
		m.write(w, k, "by HELLO decides about", op, true, d)
	}
	return decided
}

// open is the row if it has no verdict.
func (r row) open() row {
	if r.state.Final() {
		return row{}
	}
	return r
}

// resultAt covers a RESULT that reaches a server, whether or not it is the home or holds the attempt.
func (m *model) resultAt(w *world, fresh *network, k, op int) {
	for d, isFresh := range w.results(fresh, op) {
		m.write(w, k, "gets RESULT of", op, isFresh, d)
	}
}

// stop covers a server that dies and starts again without its memory, or that freezes. One server always runs.
func (m *model) stop(w *world, k int) {
	if int(w.stops) >= m.stops {
		return
	}

	next := *w
	next.stops++
	next.disown(k)
	next.servers[k] = home{}
	m.emit(w, next, false, m.actBy(w, k, "dies", -1), "")

	next = *w
	next.stops++
	next.servers[k].frozen = true
	for i := range m.servers {
		if !next.servers[i].frozen {
			m.emit(w, next, false, m.actBy(w, k, "freezes", -1), "")
			return
		}
	}
}

// sweep covers what any server may do about any attempt whose time is over, from a row that it read at any time before.
// Nothing that must happen rests on it.
func (m *model) sweep(w *world) {
	for op := range m.ops {
		switch r := w.rows[op]; r.state {
		case gozzard.AttemptPending:
			m.write(w, -1, "expire", op, false, withdrawal(op))
		case gozzard.AttemptDispatched:
			m.write(w, -1, "deadline", op, false, decision{kind: decideSettle, op: uint8(op),
				to: gozzard.AttemptUnknown, session: r.session})
		}
	}
}

// homesSend adds what running servers repeat until it is answered.
func (m *model) homesSend(w *world, net *network) {
	for k := range m.servers {
		h := &w.servers[k]
		if h.frozen || h.session == 0 {
			continue
		}

		net.welcome |= 1 << h.session
		for op := range m.ops {
			held := h.held[op]
			if held.state == 0 || !gozzard.MaySend(uint64(h.session), uint64(held.session)) {
				continue
			}
			do := asks[held.state]
			if do.Has(delivery.Send) && m.sends(h, op) {
				net.op[op] |= 1 << held.session
			}
			if do.Has(delivery.Cancel) {
				net.cancel[op] |= 1 << held.session
			}
		}
	}
}

// findHomeSilent covers an agent that opens another session because the home of its session does not answer: its lease
// ends, or another server answers its HELLO with GREET.
func (m *model) findHomeSilent(w *world) {
	if m.servers == 0 || w.registered < w.session {
		return
	}
	for k := range m.servers {
		h := &w.servers[k]
		if !h.frozen && (gozzard.IsHome(uint64(h.session), uint64(w.session)) ||
			w.welcomed && !m.intact(leaseFromHome)) {
			return
		}
	}

	a := act{verb: "home is silent, reconnect as", op: -1, num: int(w.session) + 1}
	if int(w.connects) >= maxConnects {
		m.emit(w, *w, false, a, "the model has too few sessions")
		return
	}
	next := *w
	next.homeless++
	m.connect(&next)
	m.emit(w, next, true, a, "")
}
