package gozzard_test

import (
	"fmt"
	"math/bits"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/test/explore"
)

// The exhaustive test of the delivery protocol: an explicit-state model of the record, two servers, one agent and
// the network, whose every decision is taken by the functions of this package that the product runs.
//
// The network is a set of messages that only grows: whatever was ever sent may be delivered at any later time, any
// number of times, in any order, or never. That is loss, duplication and reordering without a bound, and it needs
// no counters. Messages that can have no effect any more are removed from the set, which keeps it small. The model
// has no time: a deadline may pass at any moment.
//
// In worlds without homes a server has no state except the rows that it read. A slow server makes a decision from rows that it read long ago,
// and carries it out at any later time. A server that dies never carries it out.

const (
	maxOps      = 3
	maxConnects = 6
	maxSlots    = 2
)

// config bounds one exploration.
type config struct {
	ops           int // operations on one process
	connects      int // sessions the agent opens, by crash or reconnect
	slots         int // servers that act on old reads; another one is always prompt
	journalFaults int // how often the agent's journal may be lost or rolled back
	replaced      int // how often the record may be replaced by a new one, or by an older copy

	// Of worlds with homes; see delivery_model_home_test.go. There the slots are writes that the record carries out late.
	servers int  // with a memory; 0: servers act on what they read from the record
	stops   int  // how often a server dies or freezes
	lost    int  // how often the answer to the registration of a session or of an operation is lost
	inOrder bool // no operation supersedes another
	cancels bool // callers cancel, and a server may wait before it sends what it has recorded as dispatched

	broken mechanism
}

// mechanism names what a mutation removes.
type mechanism uint8

const (
	nothing mechanism = iota
	durableSession
	registerIfGreater
	casBeforeSend
	sessionIsCurrent
	genIsNewest
	intentBeforeEffect
	intentIsSynced
	tombstoneOnCancel
	interruptedOnRecovery
	// Not among the nine of the design, found by this model.
	journalSinceSession
	settleFromSession
	cancelInSameJournal
	withdrawOnlyPending
	tombstoneOutlivesAck
	baseLifted
	ackAfterRecord
	// Of several servers.
	lookIntoRecord
	lookForAll
	lookSettlesLate
	lookAfterHello
	lookFromSession
	takeOver
	dispatchAtHome
	leaseFromHome
	doubtLookedUp
	requestLookedUp
	readyToBear
	dispatchInOrder
	lookInOneRead
	numbersInOrder
	lookAtHeld
	// Of callers that cancel.
	recalledIsNotSent
	recallOnlyUnsent
	recallFromSession
)

// Where an operation is on the agent: the phases of the package, split into the steps between which the
// agent may die.
const (
	atAbsent uint8 = iota
	atQueued
	atIntent // INTENT written, effect not begun
	atEffect // effect happened, DONE not written
	atDone
	atInterrupted
	atNever
	atNeverAcked // tombstone whose verdict the server has: kept until the session ends
)

var phaseAt = [...]gozzard.Phase{gozzard.PhaseAbsent, gozzard.PhaseQueued, gozzard.PhaseBegun, gozzard.PhaseBegun,
	gozzard.PhaseDone,
	gozzard.PhaseInterrupted, gozzard.PhaseNever, gozzard.PhaseNever}

// What the operations request, and their results.
var (
	opAction = [maxOps]gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionStart}
	opCode   = [maxOps]gozzard.Code{gozzard.CodeOK, gozzard.CodeCommandFailed, gozzard.CodeOK}
)

// row is an attempt in the record.
type row struct {
	state   gozzard.AttemptState
	session uint8
}

// decision is a decision that a slow server has not carried out yet.
type decision struct {
	kind    decisionKind
	op      uint8
	to      gozzard.AttemptState
	session uint8 // of a dispatch; the FromSession of a settlement
	by      uint8 // in worlds with homes: the server, counted from 1; 0: its memory is gone
}

type decisionKind uint8

const (
	decideNothing decisionKind = iota
	decideDispatch
	decideSettle
	decideWithdraw // a settlement that moves a Pending row only
	decideAccept   // in worlds with homes: record an operation, as dispatched in a session if that is not 0
)

// journalPos is gozzard.JournalPos in two bytes.
type journalPos struct{ id, lsn uint8 }

func (p journalPos) real() gozzard.JournalPos {
	return gozzard.JournalPos{ID: [16]byte{p.id}, LSN: uint64(p.lsn)}
}

// network is the set of messages on their way.
type network struct {
	hello   [maxConnects + 1][2]uint64 // by connect, a bit for each shape: one of five things about each operation
	op      [maxOps]uint8              // a bit for each session
	cancel  [maxOps]uint8              // a bit for each session
	result  [maxOps]uint8              // a bit for each of atDone, atInterrupted, atNever
	welcome uint8                      // a bit for each session
}

// world is one state of everything. It has no pointers and no padding that matters: it is compared and hashed as a
// value.
type world struct {
	net network

	// The record. An operation whose row has no state is not accepted yet, or the record that had it is gone.
	rows       [maxOps]row
	gens       [maxOps]uint8 // numbers of accepted operations
	counter    uint8         // the last number
	base       uint8         // what the server adds to numbers for this agent
	registered uint8         // session
	known      journalPos
	since      uint8 // first session of the known journal

	slots   [maxSlots]decision
	servers [maxServers]home
	stops   uint8 // servers that died or froze
	lost    uint8 // answers of the record

	// The agent: on disk session, journal, newest; in memory welcomed, and at where it is not on disk.
	session      uint8
	connects     uint8
	homeless     uint8 // connects because the home was silent
	welcomed     bool
	journal      journalPos
	faults       uint8
	taken        [maxOps]uint8 // generations of operations when they arrived
	newest       uint8         // generation
	newestBefore uint8         // what newest was before an INTENT that is not yet followed by DONE
	at           [maxOps]uint8
	greeted      [maxConnects + 1]greeting // by connect

	// What really happened, which no part of the world knows.
	effects [maxOps]uint8
	ordered uint8 // operations that took effect since the journal was lost

	replaced uint8 // how often the record was replaced
	gone     uint8 // operations that only an earlier record had
	promised uint8 // operations that the present record accepted in a session of the agent
	copies   uint8 // operations that are the same request as the one before
}

// greeting is what a HELLO says beside the operations.
type greeting struct {
	session uint8
	journal journalPos
	newest  uint8 // generation
}

// act is one step, for traces. It is rendered only when a trace is printed.
type act struct {
	verb string
	op   int8  // -1: none
	slow bool  // done by the server that acts on old reads
	by   uint8 // in worlds with homes: one more than the session of the server that acts; 0: any
	d    decision
	num  int // of the session or connect
}

func (a act) String() string {
	s := a.verb

	switch {
	case a.by > 1:
		s = fmt.Sprintf("home of session %d %s", a.by-1, s)
	case a.by == 1:
		s = "server " + s
	}
	if a.slow {
		s = "late: " + s
	}
	if a.op >= 0 {
		s += fmt.Sprintf(" op%d", a.op)
	}
	if a.num > 0 {
		s += fmt.Sprintf(" [%d]", a.num)
	}

	switch a.d.kind {
	case decideDispatch:
		s += fmt.Sprintf(": dispatch op%d in session %d", a.d.op, a.d.session)
	case decideSettle:
		s += fmt.Sprintf(": op%d becomes %v", a.d.op, a.d.to)
	case decideWithdraw:
		s += fmt.Sprintf(": withdraw op%d", a.d.op)
	case decideAccept:
		s += fmt.Sprintf(": accept op%d in session %d", a.d.op, a.d.session)
	}

	return s
}

// step leads to a successor. Helpful ones need no fault, no old message and no slow server.
type step = explore.Step[world, act]

// moves are changes of rows: from a state, by an event of package delivery.
type moves [gozzard.AttemptInterrupted + 1][32]bool

// model explores one configuration.
type model struct {
	config
	steps []step // of the world being expanded

	moves     moves  // changes of rows that happened
	disagrees string // the first one that the state machine of package delivery does not follow
}

func (m *model) intact(x mechanism) bool { return m.broken != x }

func (m *model) action(op int) gozzard.Action {
	if m.inOrder {
		return gozzard.ActionRestart
	}
	return opAction[op]
}

// Initial is the world in which everything begins.
func (m *model) Initial() world {
	var w world
	for i := range m.ops {
		// Where the record may be replaced, the others are accepted before or after that; with homes, all are.
		if m.servers == 0 && (i == 0 || m.replaced == 0) {
			m.acceptInto(&w, i)
		}
	}
	w.journal.id = 1
	m.connect(&w)
	m.normalise(&w)
	return w
}

// Expand lists the successors of w. The slice is valid until the next call.
func (m *model) Expand(w *world) []step {
	m.steps = m.steps[:0]
	if m.servers > 0 {
		m.homeSteps(w)
	} else {
		m.serverSteps(w)
	}
	m.agentSteps(w)
	return m.steps
}

// emit adds a successor and checks what must hold in every state and over every step.
func (m *model) emit(before *world, next world, helpful bool, a act, bad string) {
	for i := range m.ops {
		if bad == "" && next.gone&(1<<i) == 0 {
			bad = brokenPromise(before.rows[i], next.rows[i], next.effects[i], i)
		}
	}
	if bad == "" && m.inOrder {
		bad = m.brokenOrder(before, &next)
	}
	m.normalise(&next)
	if bad == "" && next == *before {
		return
	}
	m.steps = append(m.steps, step{Next: next, Act: a, Helpful: helpful, Bad: bad})
}

// brokenPromise compares one row with what really happened.
func brokenPromise(before, after row, effects uint8, op int) string {
	if before.state.Final() && after != before {
		return fmt.Sprintf("the final verdict of op%d changed from %v to %v", op, before.state, after.state)
	}

	switch after.state {
	case gozzard.AttemptOK, gozzard.AttemptFailed:
		want := gozzard.AttemptOK
		if opCode[op] != gozzard.CodeOK {
			want = gozzard.AttemptFailed
		}
		if effects != 1 || after.state != want {
			return fmt.Sprintf("op%d is recorded %v, it took effect %d times and came out %v", op, after.state,
				effects, opCode[op])
		}
	case gozzard.AttemptNotExecuted:
		if effects != 0 {
			return fmt.Sprintf("op%d is recorded %v and took effect", op, after.state)
		}
	}

	return ""
}

// Done reports whether every attempt has its verdict.
func (m *model) Done(w *world) bool {
	for i := range m.ops {
		if !w.rows[i].state.Final() && w.gone&(1<<i) == 0 {
			return false
		}
	}
	return true
}

// normalise adds all messages that can be sent now, and removes what has no effect any more.
func (m *model) normalise(w *world) {
	m.forgetQueues(w)
	m.send(w, &w.net)
	m.forgetMessages(w)
	m.forgetDecisions(w)
	for i := range m.ops { // the generation of an operation that is neither queued nor begun is in newest, or of no use
		if p := phaseAt[w.at[i]]; p != gozzard.PhaseQueued && p != gozzard.PhaseBegun {
			w.taken[i] = 0
		}
	}
	m.forgetBeliefs(w)
	m.sortServers(w)
	if w.slots[0].less(w.slots[1]) { // servers are alike: one order of the two is enough
		w.slots[0], w.slots[1] = w.slots[1], w.slots[0]
	}
}

// send adds to net what a running server or agent would send or repeat in w. Lost messages are repeated here.
func (m *model) send(w *world, net *network) {
	m.agentSends(w, net)
	if m.servers > 0 {
		m.homesSend(w, net)
	} else {
		m.serverSends(w, net)
	}
}

// forgetMessages removes messages that every receiver would always ignore. Each rule depends on a mechanism, and does
// not apply when a mutation removes the mechanism.
func (m *model) forgetMessages(w *world) {
	if m.intact(durableSession) {
		if m.intact(sessionIsCurrent) {
			for i := range m.ops {
				w.net.op[i] &= ^uint8(0) << w.session
			}
		}
		for i := range m.ops {
			w.net.cancel[i] &= ^uint8(0) << w.session
		}
		w.net.welcome &= ^uint8(0) << w.session
		if w.welcomed {
			w.net.welcome = 0
		}
	}

	if m.intact(registerIfGreater) {
		for c := 1; c <= int(w.connects); c++ {
			s := w.greeted[c].session
			used := c < int(w.connects) || w.welcomed
			if s < w.registered || s == w.registered && (m.servers > 0 || used && !m.anyOlder(w)) {
				w.net.hello[c] = [2]uint64{}
				if c < int(w.connects) {
					w.greeted[c] = w.greeted[0]
				}
			}
		}
	}

	for i := range m.ops {
		// Reports change nothing any more, and a late CANCEL could only prevent effects.
		if w.rows[i].state.Final() || w.gone&(1<<i) != 0 {
			w.net.result[i], w.net.cancel[i] = 0, 0
		}
	}
}

// anyOlder reports whether an attempt waits for a verdict from a session before the registered one.
func (m *model) anyOlder(w *world) bool {
	for i := range m.ops {
		if r := w.rows[i]; !r.state.Final() && r.state != gozzard.AttemptPending && r.session < w.registered {
			return true
		}
	}
	return false
}

// forgetDecisions removes decisions of slow servers whose compare-and-set can never succeed again.
func (m *model) forgetDecisions(w *world) {
	for k := range w.slots {
		d := &w.slots[k]
		r := w.rows[d.op]
		dead := r.state.Final()
		switch d.kind {
		case decideAccept:
			dead = r.state != 0
		case decideDispatch:
			dead = m.intact(casBeforeSend) && (dead || m.intact(registerIfGreater) && m.intact(dispatchAtHome) &&
				d.session < w.registered)
		case decideSettle:
			dead = dead || m.intact(settleFromSession) && m.intact(registerIfGreater) && d.session != 0 &&
				d.session < r.session
		}
		if dead {
			*d = decision{}
		}
	}
}

func (d decision) less(o decision) bool {
	key := func(d decision) uint32 {
		return uint32(d.kind)<<28 | uint32(d.by)<<24 | uint32(d.op)<<16 | uint32(d.to)<<8 | uint32(d.session)
	}
	return key(d) < key(o)
}

// shapes iterates over the HELLO messages of a connect that are under way.
func (n *network) shapes(connect int) func(yield func(shape int) bool) {
	return func(yield func(int) bool) {
		for half, word := range n.hello[connect] {
			for ; word != 0; word &= word - 1 {
				if !yield(half*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
