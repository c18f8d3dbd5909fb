package gozzard_test

import (
	"cmp"

	"github.com/gozzard/gozzard"
)

// Writes of servers with homes, what the servers learn from them, and which memory has no effect any more.

// write covers a write of a server, -1 for any: the record carries it out and answers at once; or it does, and the
// answer is lost; or it carries it out much later, when the server may be frozen or dead.
func (m *model) write(w *world, k int, verb string, op int, helpful bool, d decision) {
	a := act{verb: verb, op: int8(op), d: d}
	if k >= 0 {
		a = m.actBy(w, k, verb, op)
		a.d, d.by = d, uint8(k+1)
	}

	next := *w
	moved := m.carryOut(&next, d)
	if k >= 0 && moved {
		next.learn(k, d)
	}
	m.emit(w, next, helpful, a, m.brokenByVerdict(w, d, moved))
	m.loseAnswer(w, a, d)

	for i := range m.slots {
		if i > 0 && w.slots[i] == w.slots[0] {
			continue
		}
		late := *w
		late.slots[i] = d
		if k >= 0 && !m.intact(doubtLookedUp) { // no answer counts as a success
			late.learn(k, d)
		}
		a.slow = true
		m.emit(w, late, false, a, "")
	}
}

// loseAnswer covers a write that the record carries out, without an answer to the server.
func (m *model) loseAnswer(w *world, a act, d decision) {
	next := *w
	if d.kind == decideAccept {
		if int(w.lost) >= m.lost {
			return
		}
		next.lost++
	}

	m.carryOut(&next, d)
	if again := d.op + 1; d.kind == decideAccept && int(again) < m.ops && !m.intact(requestLookedUp) {
		next.copies |= 1 << again // recorded a second time, with another id
		m.acceptInto(&next, int(again))
	}
	a.verb += ", without an answer,"
	m.emit(w, next, false, a, "")
}

// lateWrites covers writes that the record carries out long after they were decided, with and without an answer.
func (m *model) lateWrites(w *world) {
	for i := range m.slots {
		d := w.slots[i]
		if d.kind == decideNothing {
			continue
		}

		next := *w
		next.slots[i] = decision{}
		moved := m.carryOut(&next, d)
		a := act{verb: "acts, without an answer", op: -1, slow: true, d: d}
		m.emit(w, next, false, a, "")

		if k := int(d.by) - 1; k >= 0 && moved && !next.servers[k].frozen {
			next.learn(k, d)
			a.verb = "acts"
			m.emit(w, next, false, a, "")
		}
	}
}

// learn takes into the memory of a server that the record has carried out a write of it. What a HELLO has to decide
// stays open, unless this is the decision.
func (w *world) learn(k int, d decision) {
	h, r := &w.servers[k], w.rows[d.op]
	open := h.todo&(1<<d.op) != 0
	switch d.kind {
	case decideAccept:
		if !open && h.session > 0 && (r.session == 0 || r.session == h.session) {
			h.hold(int(d.op), r)
		}
	case decideDispatch:
		if !open && h.session == d.session {
			h.hold(int(d.op), row{gozzard.AttemptDispatched, d.session})
		}
	default:
		if d.to == gozzard.AttemptUnknown && h.held[d.op].state == 0 {
			return
		}
		h.todo &^= 1 << d.op
		h.held[d.op] = r.open()
	}
}

// forgetBeliefs removes memory that can have no effect any more.
func (m *model) forgetBeliefs(w *world) {
	for k := range m.servers {
		h := &w.servers[k]
		// What it would send is in the network already, or is of a session that the agent rejects. What it would write does
		// not fit any more, or is what any server may write, see sweep. If it looks, it leaves.
		past := h.session < w.registered && m.intact(dispatchAtHome) && m.intact(lookInOneRead)
		for op := range m.ops {
			if past || w.rows[op].state.Final() {
				h.held[op] = row{}
			}
		}
		if h.todo == 0 {
			h.shape, h.since = 0, 0
		}
	}
}

// sortServers puts servers in an order: they are alike.
func (m *model) sortServers(w *world) {
	for i := 1; i < m.servers; i++ {
		for k := i; k > 0 && cmp.Compare(w.servers[k-1].key(), w.servers[k].key()) > 0; k-- {
			w.servers[k-1], w.servers[k] = w.servers[k], w.servers[k-1]
			for s := range w.slots {
				switch int(w.slots[s].by) {
				case k:
					w.slots[s].by = uint8(k + 1)
				case k + 1:
					w.slots[s].by = uint8(k)
				}
			}
		}
	}
}

// key has everything of a memory in one number.
func (h *home) key() (key uint64) {
	for _, b := range []uint8{h.session, h.since, h.todo} {
		key = key<<3 | uint64(b)
	}
	key = key<<7 | uint64(h.shape)
	for _, r := range h.held {
		key = key<<6 | uint64(r.state)<<3 | uint64(r.session)
	}

	key = key<<6 | uint64(h.queued)<<3 | uint64(h.recall)
	key <<= 1
	if h.frozen {
		key++
	}
	return key
}
