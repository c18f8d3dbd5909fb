package control

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/record"
)

// recorder is the record as delivery sees it. After each write it launches the tasks that the record announced before:
// delivery never learns of a change of an attempt that it does not have yet.
type recorder struct{ p *Plane }

// OpenOf implements delivery.Store.
func (r recorder) OpenOf(ctx context.Context, agents []gozzard.AgentID) ([]gozzard.Attempt, error) {
	return r.p.o.Store.OpenOf(ctx, agents)
}

// Sessions implements delivery.Store.
func (r recorder) Sessions(ctx context.Context, agents []gozzard.AgentID) (map[gozzard.AgentID]uint64, error) {
	return r.p.o.Store.Sessions(ctx, agents)
}

// Dispatch implements delivery.Store.
func (r recorder) Dispatch(ctx context.Context, list []delivery.Dispatch) ([]bool, error) {
	rows := make([]record.Dispatch, len(list))
	for i, d := range list {
		rows[i] = record.Dispatch(d)
	}

	changed, err := r.p.o.Store.Dispatch(ctx, rows)
	for i := range rows {
		if err == nil && changed[i] {
			r.p.results.dispatched(&rows[i])
		}
	}
	r.p.launchCommitted()
	return changed, err
}

// Settle implements delivery.Store. It adds what a verdict means for the recorded process, and brings the live index
// and the metrics in line with what was written.
func (r recorder) Settle(ctx context.Context, list []delivery.Settlement) ([]bool, error) {
	rows := make([]record.Settlement, len(list))
	for i := range list {
		s := &list[i]
		rows[i] = record.Settlement{Ref: s.Ref, Op: s.Op, Agent: s.Agent, To: s.To, From: s.From,
			FromSession: s.FromSession, Outcome: s.Outcome, Journal: s.Journal, Process: r.processChange(s),
			Rejected: rejectedProcess(s), Action: s.Action, App: s.App}
	}

	began := r.p.o.Now()
	changed, err := r.p.o.Store.Settle(ctx, rows)
	if err == nil && r.p.o.Tracer != nil {
		r.p.o.Tracer.Settled(rows, changed, began)
	}
	var rejected []gozzard.ProcID
	for i := range rows {
		if err == nil && changed[i] {
			r.settled(&rows[i])
			if id := rows[i].Rejected; id != nil {
				rejected = append(rejected, *id)
			}
		}
	}

	r.p.launchCommitted()
	if len(rejected) > 0 {
		r.forget(ctx, rejected)
	}
	return changed, err
}

// forget removes processes from the live index that are not in the record any more, because their host did not take
// their first definition. No task is launched meanwhile: one that registers such a process again adds it again.
func (r recorder) forget(ctx context.Context, ids []gozzard.ProcID) {
	r.p.launcher.order.Lock()
	defer r.p.launcher.order.Unlock()
	recs, err := recorded(ctx, r.p.o.Store, ids)
	if err != nil {
		r.p.o.Log.Error("cannot read which processes hosts rejected; they are listed until the server starts again",
			"processes", len(ids), "err", err)
		return
	}
	for _, id := range ids {
		if _, ok := recs[id]; !ok {
			r.p.o.Live.Remove(id.Agent, id.Key)
			r.p.peers.noteRemoved(id)
		}
	}
}

// rejectedProcess is the process of an operation that its host rejected, or that was cancelled before its host got it: the
// host did not take a definition that came with the operation.
func rejectedProcess(s *delivery.Settlement) *gozzard.ProcID {
	refused := s.Outcome.Code == gozzard.CodeRefused && (s.To == gozzard.AttemptNotExecuted || s.To == gozzard.AttemptFailed)
	cancelled := s.Outcome.Code == gozzard.CodeCancelled && s.To == gozzard.AttemptNotExecuted
	if !refused && !cancelled || s.Action == gozzard.ActionNone || !registers(s.Action) {
		return nil
	}
	return &gozzard.ProcID{Agent: s.Agent, Key: s.Key}
}

// settled brings the live index and the metrics in line with a row that was written.
func (r recorder) settled(row *record.Settlement) {
	o := &r.p.o
	r.p.taskFeed.note(row.Ref.Task)
	r.p.results.settled(row)
	r.p.peers.noteTask(row.Ref.Task)
	if row.Process != nil && row.Process.Remove {
		o.Live.Remove(row.Agent, row.Process.ID.Key)
		r.p.peers.noteRemoved(gozzard.ProcID{Agent: row.Agent, Key: row.Process.ID.Key})
	}
	if row.To.Final() && o.Observe.Settled != nil {
		o.Observe.Settled(row.Action, row.To, row.Outcome.Code)
	}
	if row.Outcome.Code == gozzard.CodeRefused {
		o.Observe.rejected("refused_by_host") // by its policy, for the most part
	}
}

// processChange is what a successful action means for the recorded process. A start that found the process running may
// have made its supervision begin.
func (r recorder) processChange(s *delivery.Settlement) *record.ProcessChange {
	adopted := s.Action == gozzard.ActionStart && s.Outcome.Code == gozzard.CodeAlreadyRunning && s.Outcome.Hosted
	if s.Outcome.Code != gozzard.CodeOK && !adopted {
		return nil
	}

	c := &record.ProcessChange{ID: gozzard.ProcID{Agent: s.Agent, Key: s.Key}, Hosted: s.Outcome.Hosted}
	switch s.Action {
	case gozzard.ActionStart, gozzard.ActionRestart, gozzard.ActionHost:
		c.Wanted = gozzard.StateRunning
	case gozzard.ActionStop, gozzard.ActionKill:
		c.Wanted = gozzard.StateStopped
	case gozzard.ActionUnhost:
		c.Wanted = gozzard.StateStopped
		if row, ok := r.p.o.Live.Get(s.Agent, s.Key); ok {
			c.Wanted = row.Status.Wanted // only the supervision ends
		}
	case gozzard.ActionUnregister:
		c.Remove = true
	default:
		return nil
	}

	return c
}
