package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// operation is what the agent knows about one operation. Queued operations and queries are only in memory.
type operation struct {
	id      gozzard.OpID
	ref     gozzard.AttemptRef
	gen     uint64
	action  gozzard.Action
	key     gozzard.Key
	phase   gozzard.Phase
	outcome gozzard.Outcome

	lsn    uint64 // the position of the record of this phase, which is durable before the phase is reported
	toSend bool   // in Agent.toSend

	// first is the record of a process that was new when the operation began, with the definition that came along. It is nil
	// when the operation has ended.
	first *supervise.Record

	// file is the file that an operation in progress replaces; nil when the operation has ended, or is about a process.
	file *fileEntry

	veiled     bool // a query whose answer has no command line; only its own goroutine uses this
	unrecorded bool // its end is not durable, because the state folder cannot be written

	arrived time.Time // at this run of the agent; zero when an earlier run received it

	// Of an operation with a trace: when it began and was done in this run of the agent.
	trace        gozzard.Trace
	began, ended time.Time

	tries  int       // how often its verdict was sent
	sentAt time.Time // when its verdict was first sent
	due    time.Time // when its verdict is sent again
}

// hasVerdict reports whether there is a verdict. It is repeated until the server has acknowledged it.
func (op *operation) hasVerdict() bool { return op.phase >= gozzard.PhaseDone }

func (op *operation) entry() *opEntry {
	e := &opEntry{ID: opText(op.id), Task: int64(op.ref.Task), Index: op.ref.Index, Gen: op.gen, Key: op.key}
	if op.action != gozzard.ActionNone {
		e.Action = op.action.Stored()
	}
	return e
}

// intent is the record that the operation is about to have its effect.
func (op *operation) intent() *entry { return &entry{Op: op.entry(), Process: op.first, File: op.file} }

func (op *operation) report() gozzard.OpReport {
	return gozzard.OpReport{ID: op.id, Ref: op.ref, Phase: op.phase, Outcome: op.outcome}
}

// state is what the journal says, plus the operations that are only in memory. Applying the records of the journal in
// order restores it.
type state struct {
	agent    gozzard.AgentID // the owner of the journal; "" if the journal does not name it
	session  uint64
	base     uint64 // the journal position in reports of the session until the Welcome is durable
	welcomed bool   // the server has accepted the session

	ops   map[gozzard.OpID]*operation
	gens  map[gozzard.Key]uint64 // the newest generation that has begun; kept even for unregistered processes
	procs map[gozzard.Key]supervise.Record
	held  map[gozzard.Key]supervise.Held // of processes that are managed, or that ran when they were unregistered
	pasts map[gozzard.Key]supervise.Past // of processes that are managed

	groups []gozzard.Group
	events eventLog
}

func newState() *state {
	return &state{
		ops:   map[gozzard.OpID]*operation{},
		gens:  map[gozzard.Key]uint64{},
		procs: map[gozzard.Key]supervise.Record{},
		held:  map[gozzard.Key]supervise.Held{},
		pasts: map[gozzard.Key]supervise.Past{},

		events: newEventLog(),
	}
}

// replay builds the state from the records of a journal.
func replay(records []journal.Record) (*state, error) {
	s := newState()
	for _, r := range records {
		e, err := decodeEntry(r.Type, r.Body)
		if err != nil {
			return nil, fmt.Errorf("cannot read journal at lsn %d: %w", r.LSN, err)
		}
		s.apply(r.Type, e, r.LSN)
	}
	return s, nil
}

// apply is the only way to change the durable part of the state, both live and in replay.
func (s *state) apply(t journal.Type, e *entry, lsn uint64) {
	switch t {
	case recordSession:
		s.session, s.base, s.welcomed = e.Session, e.Base, false
		if e.Agent != "" {
			s.agent = e.Agent
		}
	case recordWelcome:
		s.welcomed = e.Session == s.session
	case recordIntent:
		s.setPhase(e, gozzard.PhaseBegun, lsn)
		s.raiseGen(e.Op.Key, e.Op.Gen)
	case recordDone:
		s.setPhase(e, gozzard.PhaseDone, lsn)
		s.raiseGen(e.Op.Key, e.Op.Gen)
		switch {
		case e.Removed:
			delete(s.procs, e.Op.Key)
			delete(s.pasts, e.Op.Key)
		case e.Process != nil:
			s.procs[e.Process.Key] = *e.Process
		}
	case recordNever:
		s.setPhase(e, gozzard.PhaseNever, lsn)
	case recordInterrupted:
		s.keepFirst(e.Op)
		s.setPhase(e, gozzard.PhaseInterrupted, lsn)
	case recordOp:
		s.setPhase(e, e.Phase, lsn)
	case recordAck:
		for _, id := range e.Ops {
			delete(s.ops, gozzard.OpID(id))
		}
	case recordProcess:
		s.procs[e.Process.Key] = *e.Process
	case recordGen:
		s.raiseGen(*e.Key, e.Gen)
	case recordHeld:
		s.held[*e.Key] = *e.Held
		if e.Past != nil {
			s.pasts[*e.Key] = *e.Past
		}
	case recordGroups:
		s.groups = e.Groups
	case recordEvent:
		s.events.add(*e.Event)
	case recordEventsAcked:
		s.events.ack(e.Seq)
	}
}

// setPhase sets the phase of an operation, and adds the operation if it is not known.
func (s *state) setPhase(e *entry, phase gozzard.Phase, lsn uint64) {
	id := gozzard.OpID(e.Op.ID)
	op := s.ops[id]
	if op == nil {
		action, _ := gozzard.ParseAction(e.Op.Action) // the action is only shown
		op = &operation{
			id: id, ref: gozzard.AttemptRef{Task: gozzard.TaskSeq(e.Op.Task), Index: e.Op.Index},
			gen: e.Op.Gen, key: e.Op.Key, action: action,
		}
		s.ops[id] = op
	}

	op.phase, op.lsn = phase, lsn
	op.outcome = gozzard.Outcome{}
	if e.Outcome != nil {
		op.outcome = *e.Outcome
	}
	if op.first, op.file = nil, nil; phase == gozzard.PhaseBegun {
		op.first, op.file = e.Process, e.File
	}
}

// raiseGen records a generation of a process.
func (s *state) raiseGen(key gozzard.Key, gen uint64) {
	if gen > s.gens[key] {
		s.gens[key] = gen
	}
}

// records lists the processes for the supervisor.
func (s *state) records() []supervise.Record {
	return slices.SortedFunc(maps.Values(s.procs), func(a, b supervise.Record) int { return a.Key.Compare(b.Key) })
}

// maxUnmanaged is how many identities are kept of processes that are not managed.
const maxUnmanaged = 4096

// forgetUnmanaged forgets identities of processes that are not managed: those of an earlier boot, and those of ended
// processes if there are too many. Of the others, something may still run that they left behind.
func (s *state) forgetUnmanaged(boot string, alive func(supervise.Proc) bool) {
	unmanaged := 0
	for key := range s.held {
		if _, managed := s.procs[key]; !managed {
			unmanaged++
		}
	}

	maps.DeleteFunc(s.held, func(key gozzard.Key, h supervise.Held) bool {
		_, managed := s.procs[key]
		return !managed && (boot != "" && h.BootID != boot || unmanaged > maxUnmanaged && !alive(h.Proc))
	})
}

// eachHeld calls f with the record of every process that is known by its identity or by its past.
func (s *state) eachHeld(f func(entry)) {
	for key, h := range s.held {
		e := entry{Key: &key, Held: &h}
		if p, ok := s.pasts[key]; ok {
			e.Past = &p
		}
		f(e)
	}
	for key, p := range s.pasts {
		if _, done := s.held[key]; !done {
			f(entry{Key: &key, Held: &supervise.Held{}, Past: &p})
		}
	}
}

// snapshot is the shortest journal that restores this state. With held it has the identities of processes, which the
// versions of the journal before 3 do not know.
func (s *state) snapshot(held bool) []journal.Entry {
	var out []journal.Entry
	put := func(t journal.Type, e entry) { out = append(out, e.encode(t)) }

	// The session.
	if s.session > 0 {
		put(recordSession, entry{Session: s.session, Base: s.base, Agent: s.agent})
	}
	if s.welcomed {
		put(recordWelcome, entry{Session: s.session})
	}

	// The processes.
	for key, gen := range s.gens {
		put(recordGen, entry{Key: &key, Gen: gen})
	}
	for _, rec := range s.procs {
		put(recordProcess, entry{Process: &rec})
	}

	if held {
		s.eachHeld(func(e entry) { put(recordHeld, e) })
	}

	// The operations that are durable.
	for _, op := range s.ops {
		if op.action.ReadOnly() || op.phase < gozzard.PhaseBegun {
			continue
		}
		e := entry{Op: op.entry(), Phase: op.phase, Process: op.first, File: op.file}
		if op.hasVerdict() {
			e.Outcome = &op.outcome
		}
		put(recordOp, e)
	}

	// The pools and the events.
	if len(s.groups) > 0 {
		put(recordGroups, entry{Groups: s.groups})
	}
	if s.events.acked > 0 { // before the events, so that they are read into the right part of the log
		put(recordEventsAcked, entry{Seq: s.events.acked})
	}
	for e := range s.events.kept() {
		put(recordEvent, entry{Event: e})
	}
	return out
}
