package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const (
	sendTurn    = 256       // flights of one task per turn, so that a large task does not hold up a small one
	opsPerSend  = 64        // operations in one command
	bytesToSend = 256 << 10 // specs in one command
)

// sendLoop sends what the record has as dispatched, app by app and task by task in turn.
func (p *Plane) sendLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for ctx.Err() == nil {
			batch, stale := p.nextBatch()
			if len(batch) == 0 && len(stale) == 0 {
				break
			}
			p.send(batch)
			p.backToPending(ctx, stale)
		}
	}
}

// nextBatch takes one turn: the flights to send now, and those whose session is not the agent's any more (they were
// never sent in it).
func (p *Plane) nextBatch() (batch []*flight, stale []unsent) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for len(batch)+len(stale) == 0 {
		t := p.ready.next()
		if t == nil {
			break
		}
		t.queued = false
		n := 0
		for n < len(t.queue) && n < sendTurn && t.inWindow < p.o.Window {
			p.pick(t.queue[n], &batch, &stale)
			t.queue[n] = nil
			n++
		}
		t.queue = t.queue[n:]
		p.markReady(t)
	}

	return batch, stale
}

// unsent is a flight that was recorded as dispatched in a session and never left in it. The session is kept apart:
// the flight may be in another one by the time that is undone.
type unsent struct {
	*flight
	in uint64
}

// pick marks a flight as sent, its unsent predecessors on the same process first: operations on one process leave
// in the order of their tasks.
func (p *Plane) pick(f *flight, batch *[]*flight, stale *[]unsent) {
	if f.sent || f.state != gozzard.AttemptDispatched { // what waits again comes back when it is released
		return
	}

	f.sent = true // before the predecessors: the chain has no cycles, but it may be long
	if prev := f.prev; prev != nil {
		f.prev = nil
		p.pick(prev, batch, stale)
	}

	id := gozzard.ProcID{Agent: f.agent, Key: f.op.Key}
	if p.unsent[id] == f {
		delete(p.unsent, id)
	}

	s := p.sessions[f.agent]
	if s == nil || s.id != f.session {
		f.sent = false
		*stale = append(*stale, unsent{f, f.session})
		return
	}

	f.cloud = s.cloud
	f.inWindow = true
	f.task.inWindow++
	p.schedule(f, p.nextLook(f))
	*batch = append(*batch, f)
}

// nextLook is when an unanswered flight is repeated, at the latest its deadline.
func (p *Plane) nextLook(f *flight) time.Time {
	at := p.o.Now().Add(p.o.Resend << min(f.tries, 3))
	if f.state == gozzard.AttemptDispatched && f.deadline.Before(at) {
		return f.deadline
	}
	return at
}

// send hands flights to the fabric, grouped by agent. Errors are not handled: an attempt that did not arrive is
// repeated.
func (p *Plane) send(batch []*flight) {
	byAgent := map[gozzard.AgentID][]*flight{}
	for _, f := range batch {
		byAgent[f.agent] = append(byAgent[f.agent], f)
	}
	for _, fs := range byAgent {
		p.sendTo(fs)
	}
}

// sendTo sends the flights of one agent, in their order.
func (p *Plane) sendTo(fs []*flight) {
	for len(fs) > 0 {
		n, bytes := 0, 0
		cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandOperate, Session: fs[0].session}
		for n < len(fs) && n < opsPerSend && (n == 0 || bytes+len(fs[n].op.Spec) < bytesToSend) &&
			fs[n].session == cmd.Session {
			bytes += len(fs[n].op.Spec)
			cmd.Ops = append(cmd.Ops, fs[n].op)
			n++
		}
		p.tell(fs[0].agent, fs[0].cloud, cmd)
		fs = fs[n:]
	}
}

// tell sends one command and only notes a failure: everything that matters is repeated until it is answered.
func (p *Plane) tell(agent gozzard.AgentID, cloud int, cmd *gozzard.Command) {
	if err := p.o.Dispatch.Send(agent, cloud, cmd); err != nil {
		p.o.Log.Debug("the fabric did not take a command", "agent", agent, "err", err)
	}
}

// backToPending undoes a dispatch that was recorded for a session which ended before anything was sent in it:
// nobody else knows of it, so the attempt can wait for the agent's present session.
func (p *Plane) backToPending(ctx context.Context, stale []unsent) {
	if len(stale) == 0 {
		return
	}

	rows := make([]record.Settlement, len(stale))
	for i, u := range stale {
		rows[i] = record.Settlement{Ref: u.ref, Op: u.op.ID, Agent: u.agent, To: gozzard.AttemptPending,
			FromSession: u.in}
	}

	moved, err := p.o.Store.Settle(ctx, rows)
	if err != nil {
		p.o.Log.Error("cannot requeue attempts", "count", len(rows), "err", err)
	}

	now := p.o.Now()
	p.mu.Lock()
	defer p.mu.Unlock()

	for i, u := range stale {
		f := u.flight
		switch {
		// a HELLO has decided about it
		case p.flights[f.op.ID] != f || f.state != gozzard.AttemptDispatched || f.session != u.in:
		case err != nil || !moved[i]:
			p.schedule(f, now.Add(p.o.Resend)) // the deadline or a HELLO decides
		default:
			f.state, f.session, f.expires = gozzard.AttemptPending, 0, now.Add(p.o.Lease)
			p.hold(f, now)
		}
	}
}

// release dispatches the pending attempts of an agent whose session is open: by compare-and-set first, then through
// the sender. It reports whether the record took it. readyLock is held.
func (p *Plane) release(ctx context.Context, agent gozzard.AgentID) bool {
	p.mu.Lock()
	s := p.sessions[agent]
	if s == nil || !s.online {
		p.mu.Unlock()
		return false
	}

	id := s.id
	fs := p.waiting[agent]
	delete(p.waiting, agent)

	fs = slices.DeleteFunc(fs, func(f *flight) bool {
		return f.state != gozzard.AttemptPending ||
			p.flights[f.op.ID] != f
	})

	slices.SortStableFunc(fs, func(a, b *flight) int { return cmp.Compare(a.ref.Task, b.ref.Task) })
	p.mu.Unlock()

	if len(fs) == 0 {
		return true
	}

	fs, old := supersede(fs)
	p.settleSuperseded(ctx, old)
	rows := make([]record.Dispatch, len(fs))
	now := p.o.Now()
	for i, f := range fs {
		rows[i] = record.Dispatch{Ref: f.ref, Agent: agent, Session: id,
			Deadline: now.Add(p.budget(f.op.Action, f.op.Spec))}
	}

	moved, err := p.o.Store.Dispatch(ctx, rows)
	if err != nil {
		p.o.Log.Error("cannot dispatch attempts", "agent", agent, "count", len(rows), "err", err)
	}

	all := true
	p.mu.Lock()
	defer p.mu.Unlock()

	for i, f := range fs {
		if err != nil || !moved[i] {
			all = false
			p.hold(f, now.Add(p.o.Resend)) // the timer tries again or gives up
			continue
		}
		f.state, f.session, f.deadline = gozzard.AttemptDispatched, id, rows[i].Deadline
		p.schedule(f, f.deadline)
		p.enqueue(f)
	}

	return all
}

// supersede keeps of waiting attempts on one process the newest where order does not matter
// (gozzard.Action.Supersedes). fs is in task order.
func supersede(fs []*flight) (keep, old []*flight) {
	newest := map[gozzard.Key]*flight{}
	for _, f := range fs {
		newest[f.op.Key] = f
	}

	for _, f := range fs {
		n := newest[f.op.Key]
		if n != f && n.op.Action.Supersedes(f.op.Action) {
			old = append(old, f)
		} else {
			keep = append(keep, f)
		}
	}

	return keep, old
}

func (p *Plane) settleSuperseded(ctx context.Context, old []*flight) {
	for _, f := range old {
		p.withdraw(ctx, f, gozzard.Outcome{
			Code:    gozzard.CodeSuperseded,
			Message: "not executed: a newer operation on the same process was waiting too",
		})
	}
}
