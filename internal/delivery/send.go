package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	tick       = 200 * time.Millisecond // of the timer
	maxOps     = 64                     // operations in one command
	maxOpBytes = 256 << 10              // definitions in one command
	maxCancels = 1000                   // operations in one CANCEL
)

// sendLoop sends what the record has as dispatched, app by app and task by task in turn.
func (e *Engine) sendLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}

		for more := true; more && ctx.Err() == nil; {
			w := e.change(func(now time.Time) { more = e.queue.nextBatch(now) })
			e.carryOut(ctx, &w)
		}
	}
}

// timerLoop looks at what is due: repeats, deadlines, expiries and leases.
func (e *Engine) timerLoop(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}

		w := e.change(func(now time.Time) {
			e.expireLeases(now)
			e.queue.lookAtDue(now)
			e.queue.backlog.measure(now)
		})
		e.sendAll(&w)
		e.askRelease(w.release)
		e.later.add(&w)
	}
}

// recordLoop changes the record as the timer asked for. While the record is slow, the timer must go on: agents whose
// leases end must be noticed, and operations be repeated.
func (e *Engine) recordLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.later.wake:
			w := e.later.take()
			e.carryOut(ctx, &w)
		}
	}
}

// carryOut does what transitions asked for, and applies what comes of it. It reports whether the record took all of it.
func (e *Engine) carryOut(ctx context.Context, w *work) (all bool) {
	e.sendAll(w)

	// Changes of the record.
	all = e.sendBack(ctx, w.sendBack)
	all = e.giveUp(ctx, w.giveUp) && all
	all = e.conclude(ctx, w.withdraw, expired) && all
	all = e.conclude(ctx, w.supersede, superseded) && all
	all = e.conclude(ctx, w.interrupt, lost) && all
	all = e.recall(ctx, w.recall) && all

	// What waits for agents that are online.
	e.askRelease(w.release)

	return all
}

// sendAll sends the messages that transitions asked for.
func (e *Engine) sendAll(w *work) {
	e.send(w.send)
	e.sendCancels(w.cancel)
}

// send hands operations to the fabric, those of one agent and session in one command. Errors are not handled: an
// operation that did not arrive is repeated.
func (e *Engine) send(list []message) {
	if len(list) == 0 {
		return
	}

	type parcel struct {
		cmd   *gozzard.Command
		cloud int
		bytes int
	}
	open := make(map[gozzard.AgentID]parcel, len(list))
	for _, m := range list {
		p := open[m.agent]
		if p.cmd != nil && (p.cmd.Session != m.session || len(p.cmd.Ops) >= maxOps ||
			p.bytes+len(m.op.Spec) >= maxOpBytes) {
			e.Send(m.agent, p.cloud, p.cmd)
			p = parcel{}
		}
		if p.cmd == nil {
			p.cmd = &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandOperate,
				Session: m.session}
			p.cloud = m.cloud
		}
		op := *m.op
		op.Gen += m.base
		p.cmd.Ops = append(p.cmd.Ops, op)
		p.bytes += len(m.op.Spec)
		open[m.agent] = p
	}

	for id, p := range open {
		e.Send(id, p.cloud, p.cmd)
	}
}

// sendCancels asks agents to cancel operations, in the session in which they were sent.
func (e *Engine) sendCancels(list []message) {
	if len(list) == 0 {
		return
	}

	byAgent := map[gozzard.AgentID][]message{}
	for _, m := range list {
		byAgent[m.agent] = append(byAgent[m.agent], m)
	}

	for id, list := range byAgent {
		for part := range slices.Chunk(list, maxCancels) {
			cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandCancel,
				Session: part[0].session}
			for _, m := range part {
				cmd.Cancel = append(cmd.Cancel, m.op.ID)
			}
			e.Send(id, part[0].cloud, cmd)
		}
	}
}

// Send sends one command. A failure is only logged: everything that matters is repeated until it is answered.
func (e *Engine) Send(id gozzard.AgentID, cloud int, cmd *gozzard.Command) {
	if err := e.o.Dispatcher.Send(id, cloud, cmd); err != nil {
		e.o.Log.Debug("the fabric did not take a command", "agent", id, "err", err)
	}
}

// sendBack undoes dispatches that were recorded for a session which ended before anything was sent in it: no agent
// knows of them, so the attempts can wait for the agent's present session.
func (e *Engine) sendBack(ctx context.Context, list []claim) bool {
	rows := make([]Settlement, len(list))
	for i, c := range list {
		rows[i] = c.settlement(gozzard.AttemptPending, gozzard.Outcome{})
		rows[i].FromSession = c.session
	}

	expires := e.o.Now().Add(e.o.Lease)
	return e.settleClaims(ctx, "cannot requeue attempts", list, rows,
		Event{Kind: Returned, Expires: expires}, Event{Kind: NotReturned})
}

// giveUp records attempts whose time is over as unknown. The agents are then asked to cancel what has not begun; the
// next contact makes the attempts final.
func (e *Engine) giveUp(ctx context.Context, list []claim) bool {
	rows := make([]Settlement, len(list))
	for i, c := range list {
		rows[i] = c.settlement(gozzard.AttemptUnknown,
			gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: c.reason})
		rows[i].FromSession = c.session
	}

	return e.settleClaims(ctx, "cannot record attempts as unknown", list, rows, Event{Kind: GivenUp},
		Event{Kind: NotGivenUp})
}

// conclude records verdicts of this server: without a report of the agent.
func (e *Engine) conclude(ctx context.Context, list []claim, v verdict) bool {
	rows := make([]Settlement, len(list))
	for i, c := range list {
		rows[i] = c.settlement(v.to, v.outcome(c.attempt))
		rows[i].From = v.from
	}
	return e.settleClaims(ctx, "cannot record verdicts", list, rows, Event{Kind: Settled}, Event{Kind: NotSettled})
}

// settleClaims writes rows and applies to each attempt what came of its row. It reports whether the record took all.
func (e *Engine) settleClaims(ctx context.Context, failure string, list []claim, rows []Settlement,
	yes, no Event) bool {
	if len(rows) == 0 {
		return true
	}

	changed, err := e.o.Store.Settle(ctx, rows)
	if err != nil && ctx.Err() == nil {
		e.o.Log.Error(failure, "count", len(rows), "err", err)
	}

	all := true
	w := e.change(func(now time.Time) {
		for i, c := range list {
			if err == nil && changed[i] {
				e.queue.apply(c.attempt, yes, now)
			} else {
				all, e.doubts[c.attempt.agent.id] = false, true
				e.queue.apply(c.attempt, no, now)
			}
		}
	})

	return e.carryOut(ctx, &w) && all
}

func (c claim) settlement(to gozzard.AttemptState, out gozzard.Outcome) Settlement {
	a := c.attempt
	return Settlement{Ref: a.ref, Op: a.op.ID, Agent: a.agent.id, Action: a.op.Action, Key: a.op.Key,
		App: a.task.app, To: to, Outcome: out}
}
