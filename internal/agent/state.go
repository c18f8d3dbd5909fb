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

// operation is what the agent knows of one. Those of the queue and queries are only in memory.
type operation struct {
	id      gozzard.OpID
	ref     gozzard.AttemptRef
	gen     uint64
	action  gozzard.Action
	key     gozzard.Key
	phase   gozzard.Phase
	outcome gozzard.Outcome

	lsn   uint64    // of the record that says this phase; durable before it is told
	fresh bool      // in the list of those to tell next
	tries int       // how often its verdict was sent
	due   time.Time // when it is sent again
}

// settled: there is a verdict, to be repeated until it is acknowledged.
func (op *operation) settled() bool { return op.phase >= gozzard.PhaseDone }

func (op *operation) entry() *opEntry {
	e := &opEntry{ID: opText(op.id), Task: int64(op.ref.Task), Index: op.ref.Index, Gen: op.gen, Key: op.key}
	if op.action != gozzard.ActionNone {
		e.Action = op.action.String()
	}
	return e
}

func (op *operation) report() gozzard.OpReport {
	return gozzard.OpReport{ID: op.id, Ref: op.ref, Phase: op.phase, Outcome: op.outcome}
}

// state is what the journal says, plus the operations that are only in memory. Replaying the records through apply
// gives it back.
type state struct {
	session  uint64
	base     uint64 // journal position told in that session until it is welcome
	welcomed bool   // that session

	ops   map[gozzard.OpID]*operation
	gens  map[gozzard.Key]uint64 // newest begun or done, kept for ever: also an unregistered process has no second past
	procs map[gozzard.Key]supervise.Record

	groups []gozzard.Group
	events eventLog
}

func newState() *state {
	return &state{ops: map[gozzard.OpID]*operation{}, gens: map[gozzard.Key]uint64{},
		procs: map[gozzard.Key]supervise.Record{}}
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

// apply is the only way in which the durable part changes, live and in replay.
func (s *state) apply(t journal.Type, e *entry, lsn uint64) {
	switch t {
	case recordSession:
		s.session, s.base, s.welcomed = e.Session, e.Base, false
	case recordWelcome:
		s.welcomed = e.Session == s.session
	case recordIntent:
		s.settle(e, gozzard.PhaseBegun, lsn)
		s.raise(e.Op.Key, e.Op.Gen)
	case recordDone:
		s.settle(e, gozzard.PhaseDone, lsn)
		s.raise(e.Op.Key, e.Op.Gen)
		switch {
		case e.Removed:
			delete(s.procs, e.Op.Key)
		case e.Process != nil:
			s.procs[e.Process.Key] = *e.Process
		}
	case recordNever:
		s.settle(e, gozzard.PhaseNever, lsn)
	case recordInterrupted:
		s.settle(e, gozzard.PhaseInterrupted, lsn)
	case recordOp:
		s.settle(e, e.Phase, lsn)
	case recordAck:
		for _, id := range e.Ops {
			delete(s.ops, gozzard.OpID(id))
		}
	case recordProcess:
		s.procs[e.Process.Key] = *e.Process
	case recordGen:
		s.raise(*e.Key, e.Gen)
	case recordGroups:
		s.groups = e.Groups
	case recordEvent:
		s.events.add(*e.Event)
	case recordEventsAcked:
		s.events.ack(e.Seq)
	}
}

func (s *state) settle(e *entry, phase gozzard.Phase, lsn uint64) {
	id := gozzard.OpID(e.Op.ID)
	op := s.ops[id]
	if op == nil {
		action, _ := gozzard.ParseAction(e.Op.Action) // only shown
		op = &operation{id: id, ref: gozzard.AttemptRef{Task: gozzard.TaskSeq(e.Op.Task), Index: e.Op.Index},
			gen: e.Op.Gen, key: e.Op.Key, action: action}
		s.ops[id] = op
	}

	op.phase, op.lsn = phase, lsn
	op.outcome = gozzard.Outcome{}

	if e.Outcome != nil {
		op.outcome = *e.Outcome
	}
}

func (s *state) raise(key gozzard.Key, gen uint64) {
	if gen > s.gens[key] {
		s.gens[key] = gen
	}
}

// records lists the processes, for the supervisor.
func (s *state) records() []supervise.Record {
	return slices.SortedFunc(maps.Values(s.procs), func(a, b supervise.Record) int { return a.Key.Compare(b.Key) })
}

// snapshot is the shortest journal that gives this state back.
func (s *state) snapshot() []journal.Entry {
	var out []journal.Entry
	put := func(t journal.Type, e entry) { out = append(out, e.encode(t)) }

	if s.session > 0 {
		put(recordSession, entry{Session: s.session, Base: s.base})
	}
	if s.welcomed {
		put(recordWelcome, entry{Session: s.session})
	}

	for key, gen := range s.gens {
		put(recordGen, entry{Key: &key, Gen: gen})
	}

	for _, rec := range s.procs {
		put(recordProcess, entry{Process: &rec})
	}

	for _, op := range s.ops {
		if op.action.ReadOnly() || op.phase < gozzard.PhaseBegun {
			continue
		}
		e := entry{Op: op.entry(), Phase: op.phase}
		if op.settled() {
			e.Outcome = &op.outcome
		}
		put(recordOp, e)
	}

	if len(s.groups) > 0 {
		put(recordGroups, entry{Groups: s.groups})
	}

	for i := range s.events.kept {
		put(recordEvent, entry{Event: &s.events.kept[i]})
	}

	if s.events.acked > 0 {
		put(recordEventsAcked, entry{Seq: s.events.acked})
	}

	return out
}
