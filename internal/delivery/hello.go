package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
)

// Hello is what an agent said when it opened its session.
type Hello struct {
	Agent        gozzard.AgentID
	Cloud        int
	Session      uint64
	Journal      gozzard.JournalPos
	JournalSince uint64             // first session in which the agent had this journal
	Open         []gozzard.OpReport // operations that the agent has
}

// Reconcile decides about every attempt that an older session of an agent left open, then sends what waits for it.
// It tries until the record takes it: the session is open, so the agent will not say HELLO again. LockAgent is held.
func (e *Engine) Reconcile(ctx context.Context, h Hello) error {
	for {
		all, err := e.reconcile(ctx, &h)
		if all {
			e.makeReady(ctx, h.Agent)
			return nil
		}
		if err == nil {
			continue // an attempt was changed after it was read
		}
		if e.OnlineSession(h.Agent).ID != h.Session {
			e.endSession(h.Agent, h.Session)
			return err // the agent is silent or has a newer session: its next HELLO decides
		}

		e.o.Log.Error("cannot reconcile a session, trying again", "agent", h.Agent, "err", err)
		if err := pace.Sleep(ctx, e.o.Resend); err != nil {
			return err
		}
	}
}

// endSession forgets a session that could not be reconciled. If its agent is heard again, it is asked for a HELLO.
func (e *Engine) endSession(id gozzard.AgentID, session uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.queue.agents[id]
	if g == nil || g.session.ID != session {
		return
	}
	g.end()
	if len(g.attempts) == 0 {
		delete(e.queue.agents, id)
	}
}

// reconcile does it once. It reports whether everything is decided.
func (e *Engine) reconcile(ctx context.Context, h *Hello) (all bool, err error) {
	open, err := e.openAttempts(ctx, h.Agent)
	if err != nil {
		return false, err
	}

	known := make(map[gozzard.OpID]*gozzard.OpReport, len(h.Open))
	for i := range h.Open {
		known[h.Open[i].ID] = &h.Open[i]
	}

	// Decide about each attempt by what the agent knows of it.
	var final []reported
	var requeue []Settlement
	now := e.o.Now()
	for i := range open {
		a := &open[i]
		row, ok := e.decide(a, known[a.Op], h, now)
		switch {
		case !ok:
		case row.To == gozzard.AttemptPending:
			requeue = append(requeue, row)
		default:
			final = append(final, reported{row: row, cloud: h.Cloud, session: h.Session})
		}
	}

	// Record the verdicts before the agent may forget any of them.
	if err := e.settle(ctx, final); err != nil {
		return false, err
	}
	e.acknowledgeOld(h, open)
	if all, err = e.requeue(ctx, requeue); err != nil || !all {
		return false, err
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.queue.agents[h.Agent]; g != nil && g.session.ID == h.Session {
		g.decided = true
	}
	return true, nil
}

// openAttempts reads the open attempts of an agent from the record, and takes up those that this server does not have. Most
// agents of a fleet that comes back have none. A server that is alone has all attempts, and does not ask the record about
// those agents.
func (e *Engine) openAttempts(ctx context.Context, id gozzard.AgentID) ([]gozzard.Attempt, error) {
	e.mu.Lock()
	g := e.queue.agents[id]
	none := g == nil || len(g.attempts) == 0
	e.mu.Unlock()
	if none && !e.o.Shared {
		return nil, nil
	}

	open, err := e.o.Store.OpenOf(ctx, []gozzard.AgentID{id})
	if err != nil {
		return nil, err
	}
	missing := e.Missing(open)
	apps, err := e.appsOf(ctx, missing)
	if err != nil {
		return nil, err
	}
	e.Restore(missing, apps)
	return open, nil
}

// decide gives the row that a HELLO means for an attempt; ok is false when the attempt stays as it is. report is nil
// when the agent does not have the operation.
func (e *Engine) decide(a *gozzard.Attempt, report *gozzard.OpReport, h *Hello, now time.Time) (Settlement,
	bool) {
	if report == nil {
		report = &gozzard.OpReport{ID: a.Op, Ref: a.Ref, Phase: gozzard.PhaseAbsent}
	} else if report.Phase != gozzard.PhaseAbsent {
		e.acknowledge(h.Agent, report, &reported{}, false)
	}

	next, ok := gozzard.Reconcile(a.State, a.Session, !a.Deadline.After(now),
		gozzard.Contact{Session: h.Session, Phase: report.Phase,
			SameJournal: gozzard.SameJournal(a.Session, h.JournalSince)}, report.Outcome.Code)

	return Settlement{Ref: a.Ref, Op: a.Op, Agent: h.Agent, Action: a.Action, Key: a.Key, To: next,
		FromSession: a.Session, Journal: &h.Journal, Outcome: reconciledOutcome(next, report)}, ok
}

// acknowledgeOld acknowledges verdicts that the record has already, or that belong to tasks that are not kept any more.
func (e *Engine) acknowledgeOld(h *Hello, open []gozzard.Attempt) {
	isOpen := make(map[gozzard.OpID]bool, len(open))
	for i := range open {
		isOpen[open[i].Op] = true
	}

	cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: h.Session}
	for i := range h.Open {
		r := &h.Open[i]
		if e.foreign(r.ID, h.Agent) {
			e.o.Foreign(h.Agent)
			continue
		}
		if _, decided := gozzard.Finalise(r.Phase, r.Outcome.Code); decided && !isOpen[r.ID] {
			cmd.Acked = append(cmd.Acked, r.ID)
		}
	}

	if len(cmd.Acked) > 0 {
		e.Send(h.Agent, h.Cloud, cmd)
	}
}

// foreign reports whether an open operation is another agent's.
func (e *Engine) foreign(id gozzard.OpID, from gozzard.AgentID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.queue.attempts[id]
	return a != nil && a.agent.id != from
}

// requeue records attempts that provably never began as pending again; makeReady sends them in the new session. It reports
// whether the record took all.
func (e *Engine) requeue(ctx context.Context, rows []Settlement) (all bool, err error) {
	if len(rows) == 0 {
		return true, nil
	}

	changed, err := e.o.Store.Settle(ctx, rows)
	if err != nil {
		return false, err
	}

	e.change(func(now time.Time) {
		for i := range rows {
			if a := e.queue.attempts[rows[i].Op]; a != nil && changed[i] {
				e.queue.apply(a, Event{Kind: Requeued}, now)
			}
		}
	})
	return !slices.Contains(changed, false), nil
}

// makeReady dispatches what waits for an agent until nothing does. From then on operations are recorded as dispatched
// when they are accepted. The agent's lock is held.
func (e *Engine) makeReady(ctx context.Context, id gozzard.AgentID) {
	for e.release(ctx, id) {
		e.mu.Lock()
		g := e.queue.agents[id]
		done := g == nil || g.waiting == 0
		if g != nil && done {
			g.settled = true
		}
		e.mu.Unlock()
		if done {
			return
		}
	}
}

// release dispatches the attempts that wait for an agent that is online: in the record first, then through the sender.
// It reports whether the record took all of it; the timer tries again otherwise. The agent's lock is held.
func (e *Engine) release(ctx context.Context, id gozzard.AgentID) bool {
	var session Session
	var list []*Attempt
	w := e.change(func(now time.Time) {
		g := e.queue.agents[id]
		if g == nil || !g.online || !g.decided {
			return
		}

		session = g.session
		var old []*Attempt
		list, old = splitSuperseded(g.waitingInOrder())
		for _, a := range old {
			e.queue.apply(a, Event{Kind: Superseded}, now)
		}
	})

	// What is superseded must be recorded before anything is sent: else it could be sent after the newer one.
	if session.ID == 0 || !e.carryOut(ctx, &w) {
		return false
	}
	list, ok := e.recheck(ctx, id, list)
	return ok && (len(list) == 0 || e.dispatch(ctx, id, session.ID, list))
}

// recheck gives attempts that may not be executed any more their verdict, and returns the others. It reports whether
// all of it is on record.
func (e *Engine) recheck(ctx context.Context, id gozzard.AgentID, list []*Attempt) ([]*Attempt, bool) {
	if e.o.Recheck == nil || len(list) == 0 {
		return list, true
	}

	// Ask.
	asked := make([]Waited, len(list))
	for i, a := range list {
		asked[i] = Waited{Ref: a.ref, Action: a.op.Action, Key: a.op.Key, Account: a.op.Account, Spec: a.op.Spec}
	}
	outcomes, err := e.o.Recheck(ctx, id, asked)
	if err != nil {
		if ctx.Err() == nil {
			e.o.Log.Error("cannot look at what waits for an agent", "agent", id, "count", len(list), "err", err)
		}
		return nil, false
	}

	// Record what may not be executed.
	var kept []*Attempt
	var refused []claim
	said := map[*Attempt]gozzard.Outcome{}
	for i, a := range list {
		if outcomes[i] == nil {
			kept = append(kept, a)
			continue
		}
		refused = append(refused, claim{attempt: a})
		said[a] = *outcomes[i]
	}
	return kept, e.conclude(ctx, refused, verdict{from: gozzard.AttemptPending, to: gozzard.AttemptNotExecuted,
		outcome: func(a *Attempt) gozzard.Outcome { return said[a] }})
}

// dispatch records attempts as dispatched in a session and queues those that the record took. It reports whether it
// took all.
func (e *Engine) dispatch(ctx context.Context, id gozzard.AgentID, session uint64, list []*Attempt) bool {
	rows := make([]Dispatch, len(list))
	now := e.o.Now()
	for i, a := range list {
		rows[i] = Dispatch{Ref: a.ref, Agent: id, Session: session,
			Deadline: now.Add(e.BudgetOf(a.op.Action, a.op.Spec) + e.Queue(a.task.app).Allowance(i))}
	}

	changed, err := e.o.Store.Dispatch(ctx, rows)
	if err != nil && ctx.Err() == nil {
		e.o.Log.Error("cannot dispatch attempts", "agent", id, "count", len(rows), "err", err)
	}

	all := true
	e.change(func(now time.Time) {
		for i, a := range list {
			ev := Event{Kind: NotDispatched}
			if err == nil && changed[i] {
				ev = Event{Kind: Dispatched, Session: session, Deadline: rows[i].Deadline}
			} else {
				all, e.doubts[id] = false, true
			}
			e.queue.apply(a, ev, now)
		}
	})

	return all
}
