package gozzard_test

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// Looks into the record, and what servers decide about the attempts that they hold.

// lookAt covers a look into the record: the server reads the session of the agent and all its open attempts in one
// statement.
func (m *model) lookAt(w *world, k int) {
	h := &w.servers[k]
	if h.session == 0 {
		return
	}
	helpful := m.intact(lookIntoRecord) // else only a wake-up leads to a look, and it may be lost

	next := *w
	for op := range m.ops {
		if !m.looksFor(w, h, op) {
			continue
		}
		switch do, _ := m.sight(w, h, op, false); do {
		case gozzard.LookLeave:
			left := *w
			left.disown(k)
			left.servers[k] = home{}
			m.emit(w, left, helpful, m.actBy(w, k, "leaves the agent", -1), "")
			return
		case gozzard.LookForget:
			next.servers[k].held[op] = row{}
		case gozzard.LookHold:
			next.servers[k].hold(op, w.rows[op])
		case gozzard.LookSettle:
			m.settleLate(w, k, op, helpful)
		}
	}

	m.emit(w, next, helpful, m.actBy(w, k, "looks into the record", -1), "")
}

// looksFor reports whether a look is about an attempt.
func (m *model) looksFor(w *world, h *home, op int) bool {
	r, held := w.rows[op], h.held[op].state != 0
	switch {
	case r.state == 0:
		return false
	case h.todo&(1<<op) != 0 && m.intact(lookAfterHello):
		return false
	case held:
		return m.intact(lookAtHeld)
	}
	return r.state == gozzard.AttemptPending || m.intact(lookForAll)
}

// sight is what a look means for one attempt.
func (m *model) sight(w *world, h *home, op int, late bool) (gozzard.Look, gozzard.AttemptState) {
	r, registered := w.rows[op], w.registered
	if !m.intact(lookInOneRead) { // it read the session of the agent long ago
		registered = h.session
	}
	return gozzard.OnLook(uint64(h.session), uint64(registered), gozzard.Sighting{State: r.state,
		Session: uint64(r.session), Held: h.held[op].state != 0, Late: late})
}

// settleLate covers an attempt that a server recorded for a session that was over.
func (m *model) settleLate(w *world, k, op int, helpful bool) {
	if !m.intact(lookSettlesLate) {
		return
	}
	for _, late := range []bool{false, true} {
		_, to := m.sight(w, &w.servers[k], op, late)
		d := decision{kind: decideSettle, op: uint8(op), to: to, session: w.rows[op].session}
		if !m.intact(lookFromSession) {
			d.session = 0
		}
		m.write(w, k, "by a look decides about", op, helpful, d)
	}
}

// decideAt covers the decisions of a server about an attempt that it holds: dispatch, supersede, and the deadline.
func (m *model) decideAt(w *world, k, op int) {
	h := &w.servers[k]
	held := h.held[op]
	if held.state == 0 {
		return
	}

	do := asks[held.state]
	if do.Has(delivery.Release) && h.session > 0 && m.mayRelease(w, h, op) {
		m.write(w, k, "dispatches", op, true, decision{kind: decideDispatch, op: uint8(op), session: h.session})
	}
	if do.Has(delivery.Supersede) && m.supersededAt(h, op) {
		m.write(w, k, "supersedes", op, true, withdrawal(op))
	}
	if do.Has(delivery.GiveUp) {
		m.write(w, k, "gives up", op, true, decision{kind: decideSettle, op: uint8(op), to: gozzard.AttemptUnknown,
			session: held.session})
	}
}

// mayRelease reports whether a home may dispatch an attempt: it has just looked, and nothing older waits in the record.
func (m *model) mayRelease(w *world, h *home, op int) bool {
	for older := range op {
		r := w.rows[older]
		if r.state == 0 || r.state.Final() {
			continue
		}
		if !m.intact(dispatchInOrder) { // it trusts its memory
			if h.held[older].state == gozzard.AttemptPending {
				return false
			}
			continue
		}
		if do, _ := m.sight(w, h, older, false); do != gozzard.LookHold || r.state == gozzard.AttemptPending {
			return false
		}
	}
	return true
}

// supersededAt reports whether a newer attempt waits in memory that takes the place of this one.
func (m *model) supersededAt(h *home, op int) bool {
	for newer := op + 1; newer < m.ops; newer++ {
		if h.held[newer].state == gozzard.AttemptPending && m.action(newer).Supersedes(m.action(op)) {
			return true
		}
	}
	return false
}

func withdrawal(op int) decision {
	return decision{kind: decideWithdraw, op: uint8(op), to: gozzard.AttemptNotExecuted, session: pendingOnly}
}

// brokenOrder returns which promise a step breaks: while an operation waits for the agent, no newer one on the same
// process is recorded as sent to it. The agent would reject the one that waits. There is one exception: what a former home
// recorded for a session that was over may be passed by one that is accepted before the home has looked.
func (m *model) brokenOrder(before, after *world) string {
	for op := range m.ops {
		was, is := before.rows[op], after.rows[op]
		if was.state == 0 && is.state != 0 && after.newest > after.gens[op] {
			return "an operation is accepted with an older number than one that the agent has"
		}
		if is == was || is.state != gozzard.AttemptDispatched || is.session != after.session {
			continue
		}
		for older := range op {
			r := after.rows[older]
			late := r.state == gozzard.AttemptDispatched && r.session < after.session && after.at[older] == atAbsent
			if r.state == gozzard.AttemptPending || late && was.state != 0 {
				return "an operation is sent while an older one waits"
			}
		}
	}
	return ""
}
