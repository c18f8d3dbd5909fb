package gozzard_test

import "github.com/gozzard/gozzard"

// The agent of the protocol model.

// agentSteps lists what the agent may do and what may happen to it.
func (m *model) agentSteps(w *world) {
	fresh := network{}
	m.send(w, &fresh)

	for i := range m.ops {
		m.receiveOps(w, &fresh, i)
		m.receiveCancels(w, &fresh, i)
		m.receiveAck(w, i)
		m.work(w, i)
	}

	if w.net.welcome&(1<<w.session) != 0 && !w.welcomed {
		next := *w
		next.welcomed = true
		m.emit(w, next, fresh.welcome&(1<<w.session) != 0, act{verb: "WELCOME", op: -1, num: int(w.session)}, "")
	}

	if int(w.connects-w.homeless) < m.connects {
		m.disturb(w)
	}
	m.findHomeSilent(w)
}

// connect raises the session, and writes it to disk before the agent sends anything in it. It forgets tombstones whose
// verdicts are recorded: from now on operations of older sessions are rejected because of their session.
func (m *model) connect(w *world) {
	w.session++
	w.connects++
	w.welcomed = false
	for i := range m.ops {
		if w.at[i] == atNeverAcked {
			w.at[i] = atAbsent
		}
	}
	w.greeted[w.connects].session = w.session
	w.greeted[w.connects].journal = w.journal
	if m.replaced > 0 {
		w.greeted[w.connects].newest = uint8(m.newest(w))
	}
}

// receiveOps covers operations that arrive, of this session and of any other.
func (m *model) receiveOps(w *world, fresh *network, op int) {
	for s := uint8(1); int(s) <= maxConnects; s++ {
		if w.net.op[op]&(1<<s) == 0 {
			continue
		}
		session := uint64(s)
		if !m.intact(sessionIsCurrent) {
			session = uint64(w.session)
		}
		// The model has no end of a lease. An agent whose lease has ended rejects operations, which is the same as
		// messages that never arrive.
		st := gozzard.AgentView{Session: uint64(w.session), Leased: true, Phase: phaseAt[w.at[op]],
			NewestGen: m.newest(w)}
		next, bad := *w, ""
		switch gozzard.Admit(st, session, uint64(w.gens[op]+w.base), m.action(op).ReadOnly()) {
		case gozzard.AdmitQueue:
			next.at[op], next.taken[op] = atQueued, w.gens[op]+w.base
		case gozzard.AdmitRefuseOld:
			next.at[op] = atNever
			m.log(&next)
			bad = m.brokenByRefusal(w, op)
		}
		m.emit(w, next, fresh.op[op]&(1<<s) != 0, act{verb: "OP arrives,", op: int8(op), num: int(s)}, bad)
	}
}

// brokenByRefusal returns which promise the agent breaks when it rejects op as old. An operation that was accepted in a
// session may only be rejected for a newer one that the same record has.
func (m *model) brokenByRefusal(w *world, op int) string {
	if w.promised&(1<<op) == 0 || w.rows[op].state.Final() {
		return ""
	}
	for i := range m.ops {
		if w.rows[i].state != 0 && w.gens[i] > w.gens[op] {
			return ""
		}
	}
	return "an operation is rejected for a newer one that no server knows"
}

// newest is the newest accepted generation, including queued operations.
func (m *model) newest(w *world) uint64 {
	if !m.intact(genIsNewest) {
		return 0
	}
	n := uint64(w.newest)
	for i := range m.ops {
		if phaseAt[w.at[i]] == gozzard.PhaseQueued || phaseAt[w.at[i]] == gozzard.PhaseBegun {
			n = max(n, uint64(w.taken[i]))
		}
	}
	return n
}

// log counts a record of the journal. Positions matter only where journals can be rolled back.
func (m *model) log(w *world) {
	if m.journalFaults > 0 {
		w.journal.lsn++
	}
}

// receiveCancels covers CANCEL of the current session; the agent's answer is the RESULT it sends from then on.
func (m *model) receiveCancels(w *world, fresh *network, op int) {
	if w.net.cancel[op]&(1<<w.session) == 0 {
		return
	}

	next := *w

	if gozzard.OnCancel(phaseAt[w.at[op]]) == gozzard.PhaseNever && w.at[op] < atNever {
		if m.intact(tombstoneOnCancel) {
			next.at[op] = atNever
			m.log(&next)
		} else { // say "never" and remember nothing
			next.net.result[op] |= 1 << atNever
		}
	}

	m.emit(w, next, fresh.cancel[op]&(1<<w.session) != 0,
		act{verb: "CANCEL arrives,", op: int8(op), num: int(w.session)}, "")
}

// receiveAck covers ACK, which answers a RESULT once the verdict is recorded, so the journal need not keep it. The
// agent repeats a RESULT until then, so there is an ACK whenever there is a verdict, and the network need not keep
// it either. A tombstone stays as long as its operation could still arrive in this session: nothing else would
// reject the operation, because a tombstone has no generation.
//
// A server may acknowledge from memory what it saw recorded (package delivery, recent): the row is final then, so this is
// the same ACK. It may not acknowledge a verdict that is only on its way into the record.
func (m *model) receiveAck(w *world, op int) {
	if !w.rows[op].state.Final() && w.gone&(1<<op) == 0 && m.intact(ackAfterRecord) {
		return
	}

	next := *w
	switch w.at[op] {
	case atDone, atInterrupted:
		next.at[op] = atAbsent
	case atNever:
		next.at[op] = atNeverAcked
		if !m.intact(tombstoneOutlivesAck) {
			next.at[op] = atAbsent
		}
	}

	m.emit(w, next, true, act{verb: "ACK arrives,", op: int8(op)}, "")
}

// work covers the agent's own steps; it may die between any two of them.
func (m *model) work(w *world, op int) {
	next := *w
	switch w.at[op] {
	case atQueued:
		if !gozzard.MayBegin(phaseAt[w.at[op]]) || m.mustWait(w, op) {
			return
		}
		next.at[op] = atIntent
		next.newestBefore, next.newest = w.newest, max(w.newest, w.taken[op])
		m.log(&next)
		m.emit(w, next, true, act{verb: "INTENT of", op: int8(op)}, "")
	case atIntent:
		next.at[op] = atEffect
		next.effects[op]++
		next.ordered |= 1 << op
		m.emit(w, next, true, act{verb: "EFFECT of", op: int8(op)}, brokenByEffect(w, op))
	case atEffect:
		next.at[op] = atDone
		next.newestBefore = next.newest
		m.log(&next)
		m.emit(w, next, true, act{verb: "DONE with", op: int8(op)}, "")
	}
}

// mustWait reports whether an operation has to wait: operations on one process run one after the other, in the order
// of their generations.
func (m *model) mustWait(w *world, op int) bool {
	for i := range m.ops {
		if phaseAt[w.at[i]] == gozzard.PhaseBegun || i < op && w.at[i] == atQueued {
			return true
		}
	}
	return false
}

// brokenByEffect returns which promise the effect of op breaks in w.
func brokenByEffect(w *world, op int) string {
	switch {
	case w.effects[op] > 0:
		return "an operation takes effect twice"
	case w.rows[op].state.Final():
		return "an operation takes effect after its verdict was recorded as " + w.rows[op].state.String()
	case w.copies&(1<<op) != 0 && w.effects[op-1] > 0, w.copies&(2<<op) != 0 && w.effects[op+1] > 0:
		return "a request takes effect twice"
	case w.ordered>>(op+1) != 0:
		return "an older intent takes effect after a newer one"
	}
	return ""
}

// disturb covers a broken connection, the death of the agent at this point, and the loss of its journal.
func (m *model) disturb(w *world) {
	next := *w
	m.connect(&next)
	m.emit(w, next, false, act{verb: "reconnect as", op: -1, num: int(next.session)}, "")

	m.crash(w, m.intact(intentBeforeEffect), "crash, start as")

	if !m.intact(intentIsSynced) {
		m.crash(w, false, "crash that loses what was not synced, start as")
	}
	if int(w.faults) >= m.journalFaults {
		return
	}

	lost := *w
	m.loseJournal(&lost)
	lost.journal = journalPos{id: w.journal.id + 1}
	m.crashInto(w, lost, "crash, journal lost, start as")

	// The journal is rolled back to before the position that the server has seen. A smaller rollback cannot be noticed;
	// fdatasync prevents it.
	if w.known.id == w.journal.id && w.known.lsn > 0 {
		old := *w
		m.loseJournal(&old)
		old.journal.lsn = 0
		m.crashInto(w, old, "crash, journal rolled back, start as")
	}
}

// crash ends the agent and starts it again from its disk.
func (m *model) crash(w *world, intentKept bool, verb string) {
	next := *w
	for i := range m.ops {
		switch w.at[i] {
		case atQueued:
			next.at[i] = atAbsent
		case atIntent, atEffect:
			if !intentKept {
				next.at[i], next.newest = atAbsent, w.newestBefore
				continue
			}
			recovered := gozzard.PhaseBegun
			if m.intact(interruptedOnRecovery) {
				recovered = gozzard.OnRecovery(recovered)
			}
			next.at[i] = atIntent // what an agent does with something begun is to go on with it
			if recovered == gozzard.PhaseInterrupted {
				next.at[i] = atInterrupted
			}
		}
	}

	next.newestBefore = next.newest
	m.crashInto(w, next, verb)
}

// loseJournal removes everything that the agent knew about operations. The order of generations begins again, because
// the newest generation was in the journal.
func (m *model) loseJournal(w *world) {
	w.at = [maxOps]uint8{}
	w.newest, w.newestBefore, w.ordered = 0, 0, 0
	w.faults++
}

func (m *model) crashInto(w *world, next world, verb string) {
	if !m.intact(durableSession) {
		next.session = 0
	}
	m.connect(&next)
	m.emit(w, next, false, act{verb: verb, op: -1, num: int(next.session)}, "")
}

// agentSends adds what the agent repeats until it is answered.
func (m *model) agentSends(w *world, net *network) {
	shape, factor := 0, 1
	for i := range m.ops {
		switch w.at[i] {
		case atQueued, atIntent, atEffect:
			shape += 1 * factor
		case atDone:
			shape += 2 * factor
			net.result[i] |= 1 << atDone
		case atInterrupted:
			shape += 3 * factor
			net.result[i] |= 1 << atInterrupted
		case atNever:
			shape += 4 * factor
			net.result[i] |= 1 << atNever
		}
		factor *= 5
	}

	if !w.welcomed {
		net.hello[w.connects][shape/64] |= 1 << (shape % 64)
	}
}

// phaseOfShape reads a phase that agentSends wrote.
func phaseOfShape(shape, op int) gozzard.Phase {
	for range op {
		shape /= 5
	}
	return [...]gozzard.Phase{gozzard.PhaseAbsent, gozzard.PhaseBegun, gozzard.PhaseDone, gozzard.PhaseInterrupted,
		gozzard.PhaseNever}[shape%5]
}
