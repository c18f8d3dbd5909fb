package agent

import (
	"errors"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// unsaved is the end of an operation that could not be written. Until it is written, the operation counts as begun:
// after a crash it is INTERRUPTED, which is true.
type unsaved struct {
	op  *operation
	end entry
}

// finish makes the end of an operation durable, together with the record of the process, before anything follows from
// it.
func (a *Agent) finish(op *operation, out gozzard.Outcome, rec *supervise.Record, removed bool) {
	a.o.Failpoint("after-effect")
	out.Message = clip(out.Message)
	lsn, ok := a.writeEnd(op, entry{Op: op.entry(), Outcome: &out, Process: rec, Removed: removed})
	if !ok {
		return
	}
	err := a.journal.Sync(lsn)
	if err != nil && !errors.Is(err, journal.ErrUnable) { // the journal reports the error through fatal
		return
	}

	a.o.Failpoint("after-done")
	a.mu.Lock()
	op.unrecorded = op.unrecorded || err != nil
	a.queueResult(op)
	a.mu.Unlock()
}

// writeEnd writes DONE. If there is no room, it stores the end in unsaved and returns false.
func (a *Agent) writeEnd(op *operation, e entry) (lsn uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if op.phase != gozzard.PhaseBegun {
		return 0, false
	}
	a.noteEnd(op)
	if len(a.unsaved) > 0 { // ends are written in order, so that the newest record of a process wins
		a.unsaved = append(a.unsaved, unsaved{op, e})
		return 0, false
	}

	lsn, err := a.keep(true, recordDone, &e)
	if err == nil {
		delete(a.newProcs, op.key)
		op.unrecorded = lsn == 0
	}

	switch {
	case errors.Is(err, journal.ErrNoSpace):
		a.unsaved = append(a.unsaved, unsaved{op, e})
		a.log.Error("cannot record the end of an operation yet: the disk of the journal is full", "op", op.id)
		a.wake()
	case err != nil: // it counts as begun, and as INTERRUPTED after the restart that follows
		a.log.Error("cannot record the end of an operation", "op", op.id, "err", err)
	}
	return lsn, err == nil
}

// saveEnds tries again to write the ends in unsaved. It reports whether some are left.
func (a *Agent) saveEnds() (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	for len(a.unsaved) > 0 {
		u := a.unsaved[0]
		lsn, err := a.keep(true, recordDone, &u.end)
		if err != nil {
			return true
		}
		u.op.unrecorded = lsn == 0
		a.unsaved = a.unsaved[1:]
		delete(a.newProcs, u.op.key)
		a.queueResult(u.op)
	}

	a.unsaved = nil
	return false
}

// writeTombstone records that an operation never happened and never will, and queues that result. writeIntent explains
// what happens if there is no room. The caller holds a.mu.
func (a *Agent) writeTombstone(op *operation, out gozzard.Outcome) {
	e := entry{Op: op.entry(), Outcome: &out}
	if _, err := a.keep(false, recordNever, &e); err != nil {
		op.phase, op.outcome = gozzard.PhaseNever, out
		if !errors.Is(err, journal.ErrNoSpace) { // the journal is broken: no report is sent any more
			return
		}
	}
	a.queueResult(op)
}

// handleAck forgets verdicts that are durable at the server. The acknowledgement need not be durable: if a verdict is
// sent again, it is acknowledged again. A begun or finished operation that arrives again is rejected by its
// generation. A tombstone may belong to an operation that has not arrived yet, so the agent remembers it until the
// session ends. After that, the session of the operation is too old.
func (a *Agent) handleAck(cmd *gozzard.Command) {
	if len(cmd.Acked) == 0 {
		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if cmd.Session != a.state.session {
		return
	}

	// Forget the verdicts, except for tombstones.
	var e entry
	now := a.o.Now()
	for _, id := range cmd.Acked {
		op := a.state.ops[id]
		if op == nil || !op.hasVerdict() {
			continue
		}
		if op.tries == 1 {
			a.acks.Answered(now.Sub(op.sentAt))
		}
		if op.phase == gozzard.PhaseNever {
			a.tombstones[id] = op
		}
		if op.lsn > 0 {
			e.Ops = append(e.Ops, opText(id))
		}
		delete(a.state.ops, id)
	}

	// Record that.
	if len(e.Ops) > 0 {
		if _, err := a.write(false, recordAck, &e); err != nil {
			a.log.Debug("cannot record an acknowledgement", "err", err)
		}
	}

	// No tombstone may be forgotten within a session, so open a new one if there are too many.
	if len(a.tombstones) > maxTombstones {
		a.contact.requestSession(a.state.session)
	}
}
