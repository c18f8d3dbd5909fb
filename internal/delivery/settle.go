package delivery

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
)

const (
	settleBatch  = 2000                  // verdicts in one write
	settleShared = 500                   // the same while several apps wait for verdicts: a write delays the next one
	settleQueue  = 8192                  // verdicts that wait for a write; agents wait when there are more
	settleMany   = 64                    // verdicts in the last write from which on the next one waits for more
	settleLinger = 10 * time.Millisecond // how long it waits
	settleAgain  = 4                     // how often in Resend verdicts are written again while the record does not answer
)

// reported is a verdict that an agent reported, on its way into the record.
type reported struct {
	row     Settlement
	app     string // "" when this server does not know the operation
	lane    laneKind
	cloud   int
	session uint64
}

// Receive takes in what an agent reports about operations.
func (e *Engine) Receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	journal := r.Journal // a copy: the rows must not hold the whole report
	var known []gozzard.OpID
	for i := range r.Results {
		v, next := e.accept(from, &r.Results[i], &journal)
		switch next {
		case reportKnown:
			known = append(known, r.Results[i].ID)
		case reportRecord:
			v.cloud, v.session = cloud, r.Session
			if !e.verdicts.add(v, e.quit) {
				return
			}
		}
	}

	if len(known) > 0 {
		e.Send(from, cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck,
			Session: r.Session, Acked: known})
	}
}

// reportNext is what comes of a report about an operation.
type reportNext uint8

const (
	reportNothing reportNext = iota // it decides nothing, or its verdict is on its way into the record already
	reportKnown                     // the record has the verdict: acknowledge it
	reportRecord                    // the verdict must be recorded
)

// accept turns a report about an operation into a row for the record, if it decides something.
func (e *Engine) accept(from gozzard.AgentID, r *gozzard.OpReport, pos *gozzard.JournalPos) (v reported,
	next reportNext) {
	state, final := gozzard.Finalise(r.Phase, r.Outcome.Code)
	next, mine := e.acknowledge(from, r, &v, final)
	if !mine {
		e.o.Foreign(from)
		return v, reportNothing
	}
	if next != reportRecord {
		return v, next
	}

	v.row.Op, v.row.Agent, v.row.Journal = r.ID, from, pos
	v.row.To, v.row.Outcome = e.correct(r.ID, state, outcomeOf(r))
	return v, reportRecord
}

// correct changes the verdict of an agent that did not execute an operation where this server knows more about it.
func (e *Engine) correct(id gozzard.OpID, to gozzard.AttemptState,
	out gozzard.Outcome) (gozzard.AttemptState, gozzard.Outcome) {
	if to != gozzard.AttemptNotExecuted {
		return to, out
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.queue.attempts[id]
	switch {
	case a == nil:
	case out.Code == gozzard.CodeExpired && a.unsent:
		return to, neverSent
	case out.Code == gozzard.CodeSuperseded && a.found && a.agent.session.Behind:
		return gozzard.AttemptInterrupted, notKnown // the agent may have executed it before, and forgotten it
	}
	return to, out
}

// acknowledge notes that an agent has an operation, and fills in what this server knows of it. mine is false when the
// operation is another agent's. final says that the report is a verdict.
func (e *Engine) acknowledge(from gozzard.AgentID, r *gozzard.OpReport, v *reported, final bool) (next reportNext,
	mine bool) {
	mine = true
	v.row.Ref = r.Ref
	if final {
		next = reportRecord
	}

	e.change(func(now time.Time) {
		a := e.queue.attempts[r.ID]
		if a == nil {
			owner, recorded := e.queue.recent.owner(r.ID)
			switch mine = !recorded || owner == from; {
			case recorded && final:
				next = reportKnown
			default: // of long ago: the record knows
			}
			return
		}
		if mine = a.agent.id == from; !mine {
			return
		}

		v.app, v.row.App, v.row.Ref, v.row.Action, v.row.Key = a.task.app, a.task.app, a.ref, a.op.Action, a.op.Key
		e.queue.apply(a, Event{Kind: Acknowledged}, now)
		switch {
		case !final:
			e.queue.measure(a, r.Held, now)
		case a.reported: // the acknowledgement follows when the record has it
			next = reportNothing
		default:
			a.held = r.Held
			e.queue.setReported(a, true)
			v.lane = e.queue.lane(a.task.app)
		}
	})
	return next, mine
}

// settleLoop records the verdicts of a lane: those that arrive while one write runs go into the next one. An agent gets
// its acknowledgement afterwards. When the record fails for long there is none, and the agent repeats.
func (e *Engine) settleLoop(ctx context.Context, kind laneKind) {
	batch := make([]reported, 0, settleBatch)
	for {
		many := len(batch) >= settleMany
		batch = batch[:0]
		select {
		case <-ctx.Done():
			return
		case <-e.verdicts.lanes[kind].wake:
			batch = e.gather(kind, batch, many)
		}

		err := e.settlePatiently(ctx, batch)
		e.verdicts.written(batch)
		if err != nil && ctx.Err() == nil {
			e.o.Log.Error("cannot record verdicts, agents will repeat them", "count", len(batch), "err", err)
		}
	}
}

// settlePatiently is settle that tries again while the record does not answer, for as long as a lease: agents repeat their
// verdicts ever more slowly, so service would come back long after the record does.
func (e *Engine) settlePatiently(ctx context.Context, batch []reported) (err error) {
	for end := e.o.Now().Add(e.o.Lease); ; {
		if err = e.write(ctx, batch); gozzard.KindOf(err) != gozzard.ErrUnavailable || e.o.Now().After(end) {
			break
		}
		if pace.Sleep(ctx, e.o.Resend/settleAgain) != nil {
			break
		}
	}
	if err != nil {
		e.unreport(batch)
	}
	return err
}

// gather adds the verdicts that are there. When there are many it waits a little for more: each write changes the
// same pages of the record again.
func (e *Engine) gather(kind laneKind, batch []reported, many bool) []reported {
	most := settleBatch
	if e.shared() {
		most = settleShared
	}
	batch = e.verdicts.take(kind, batch, most)
	if !many {
		return batch
	}

	for late := time.After(settleLinger); len(batch) < most; {
		select {
		case <-e.verdicts.lanes[kind].wake:
			batch = e.verdicts.take(kind, batch, most)
		case <-late:
			return batch
		case <-e.quit:
			return batch
		}
	}

	return batch
}

// shared reports whether several apps have attempts without a verdict.
func (e *Engine) shared() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue.quotas) > 1
}

// settle records verdicts and acknowledges those that the agents may forget.
func (e *Engine) settle(ctx context.Context, batch []reported) error {
	err := e.write(ctx, batch)
	if err != nil {
		e.unreport(batch)
	}
	return err
}

// write is settle that leaves verdicts which were not recorded as they are.
func (e *Engine) write(ctx context.Context, batch []reported) error {
	if len(batch) == 0 {
		return nil
	}

	rows := make([]Settlement, len(batch))
	for i := range batch {
		rows[i] = batch[i].row
	}

	changed, err := e.o.Store.Settle(ctx, rows)
	if err != nil {
		return err
	}

	// From here on changed says which operations the agents may forget.
	e.change(func(now time.Time) {
		for i := range batch {
			changed[i] = e.settled(&batch[i].row, changed[i], now)
		}
	})

	acks := map[gozzard.AgentID]*ack{}
	for i := range batch {
		if !changed[i] {
			continue
		}
		r := &batch[i]
		k := acks[r.row.Agent]
		if k == nil {
			k = &ack{cloud: r.cloud, cmd: gozzard.Command{Version: gozzard.ProtocolVersion,
				Kind: gozzard.CommandAck, Session: r.session}}
			acks[r.row.Agent] = k
		}
		k.cmd.Acked = append(k.cmd.Acked, r.row.Op)
	}

	for id, k := range acks {
		e.Send(id, k.cloud, &k.cmd)
	}

	return nil
}

// unreport notes that verdicts did not come into the record: the next report of each counts again.
func (e *Engine) unreport(batch []reported) {
	e.change(func(time.Time) {
		for i := range batch {
			if a := e.queue.attempts[batch[i].row.Op]; a != nil {
				e.queue.setReported(a, false)
			}
		}
	})
}

// ack is a command to one agent with the verdicts that are recorded.
type ack struct {
	cmd   gozzard.Command
	cloud int
}

// settled applies a verdict that was written; changed is false when the record has another one already, or the
// attempt was never this agent's. It reports whether the agent may forget the operation: not while the record waits
// for something else.
func (e *Engine) settled(row *Settlement, changed bool, now time.Time) bool {
	a := e.queue.attempts[row.Op]
	if a == nil || a.agent.id != row.Agent {
		return true
	}
	if changed {
		e.queue.measure(a, a.held, now)
		e.queue.apply(a, Event{Kind: Settled}, now)
	}
	e.queue.setReported(a, false)
	if !changed { // another server may have recorded it
		e.doubts[row.Agent] = true
	}
	return changed
}
