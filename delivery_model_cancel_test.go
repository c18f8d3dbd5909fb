package gozzard_test

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// Callers that cancel, in worlds with homes. There a home may wait before it sends what the record has as dispatched, and a
// caller may cancel at any time. What waits in the record is withdrawn, by any server (see sweep). What waits in the queue
// of its home is taken out of the queue, and then the home records the verdict.

// hold takes an attempt into memory. What is newly dispatched in the session of the server is not sent yet.
func (h *home) hold(op int, r row) {
	if h.held[op] != r && r.state == gozzard.AttemptDispatched && r.session == h.session {
		h.queued |= 1 << op
		h.recall &^= 1 << op
	}
	h.held[op] = r
}

// forgetQueues keeps queues in line with memory: only what is held as dispatched in the session of a server is in its queue.
func (m *model) forgetQueues(w *world) {
	for k := range m.servers {
		h := &w.servers[k]
		for op := range maxOps {
			if r := h.held[op]; !m.cancels || r.state != gozzard.AttemptDispatched || r.session != h.session {
				h.queued &^= 1 << op
				h.recall &^= 1 << op
			}
		}
	}
}

// sends reports whether a server sends and repeats an attempt that it holds as dispatched.
func (m *model) sends(h *home, op int) bool {
	if !m.cancels {
		return true
	}
	return h.queued&(1<<op) == 0 && (h.recall&(1<<op) == 0 || !m.intact(recalledIsNotSent))
}

// cancelAt covers a home that sends what is in its queue, and a caller that cancels what the home holds.
func (m *model) cancelAt(w *world, k, op int) {
	h, bit := &w.servers[k], uint8(1)<<op
	held := h.held[op]
	if !m.cancels || held.state == 0 {
		return
	}

	// The turn of an attempt comes.
	if h.queued&bit != 0 {
		next := *w
		next.servers[k].queued &^= bit
		m.emit(w, next, true, m.actBy(w, k, "sends", op), "")
	}

	// A caller cancels.
	switch ask := asks[held.state]; {
	case !ask.Has(delivery.Recall):
	case held.state == gozzard.AttemptPending:
		m.write(w, k, "cancels", op, false, withdrawal(op))
	case held.session == h.session && h.recall&bit == 0 && (h.queued&bit != 0 || !m.intact(recallOnlyUnsent)):
		next := *w
		next.servers[k].queued &^= bit
		next.servers[k].recall |= bit
		m.emit(w, next, false, m.actBy(w, k, "takes out of the queue", op), "")
	}

	// The home records the verdict, again and again.
	if h.recall&bit != 0 {
		d := decision{kind: decideSettle, op: uint8(op), to: gozzard.AttemptNotExecuted, session: held.session}
		if !m.intact(recallFromSession) {
			d.session = 0
		}
		m.write(w, k, "records the cancel of", op, true, d)
	}
}
