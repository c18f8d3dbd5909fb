package control

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const tick = 200 * time.Millisecond

// timerLoop looks at what is due: repeats, deadlines, expiries and leases.
func (p *Plane) timerLoop(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		p.expireLeases()
		p.lookAtDue(ctx)
	}
}

// expireLeases marks hosts that were silent for the lease as offline. Attempts they have not answered are looked at
// right away.
func (p *Plane) expireLeases() {
	now := p.o.Now()
	p.mu.Lock()
	defer p.mu.Unlock()

	for agent, s := range p.sessions {
		if !s.online || now.Sub(s.heard) < p.o.Lease {
			continue
		}
		s.online = false
		p.o.Live.SetOnline(agent, false, s.heard)
		p.o.Log.Info("host is silent", "agent", agent, "since", s.heard)
		for _, f := range p.byAgent[agent] {
			if f.state == gozzard.AttemptDispatched && !f.begun {
				p.schedule(f, now)
			}
		}
	}
}

// lookAtDue decides about each flight that is due.
func (p *Plane) lookAtDue(ctx context.Context) {
	now := p.o.Now()
	var repeat, unknown, expired, lost []*flight
	cancel := map[gozzard.AgentID][]*flight{}
	retry := map[gozzard.AgentID]bool{}
	p.mu.Lock()

	for len(p.due) > 0 && !p.due[0].due.After(now) {
		f := heap.Pop(&p.due).(*flight)
		f.due = time.Time{}
		online := p.sessions[f.agent] != nil && p.sessions[f.agent].online
		switch {
		case f.state == gozzard.AttemptPending && !f.expires.After(now) && !online:
			expired = append(expired, f)
		case f.state == gozzard.AttemptPending && online:
			retry[f.agent] = true
			p.schedule(f, now.Add(p.o.Resend))
		case f.state == gozzard.AttemptPending:
			p.schedule(f, f.expires)
		case f.state == gozzard.AttemptUnknown && now.Sub(f.deadline) > p.o.Keep:
			lost = append(lost, f)
		case f.state == gozzard.AttemptUnknown:
			if online {
				cancel[f.agent] = append(cancel[f.agent], f)
			}
			f.tries++
			p.schedule(f, p.nextLook(f))
		case !f.deadline.After(now), !online && !f.begun:
			unknown = append(unknown, f)
		case f.begun || !f.sent:
			p.schedule(f, f.deadline)
		default:
			p.leaveWindow(f)
			f.tries++
			p.schedule(f, p.nextLook(f))
			repeat = append(repeat, f)
		}
	}

	p.mu.Unlock()
	p.send(repeat)
	p.giveUp(ctx, unknown)

	for agent, fs := range cancel {
		p.sendCancel(agent, fs)
	}

	for _, f := range expired {
		p.withdraw(ctx, f, gozzard.Outcome{
			Code: gozzard.CodeUnreachable, Message: fmt.Sprintf("not executed: host %s did not come back in time",
				f.agent),
		})
	}

	for _, f := range lost {
		p.settleOne(ctx, f, record.Settlement{From: gozzard.AttemptUnknown, To: gozzard.AttemptInterrupted,
			Outcome: gozzard.Outcome{
				Code:    gozzard.CodeInterrupted,
				Message: "interrupted: the host was not heard of again; it was done at most once and is not repeated by itself",
			}})
	}

	for agent := range retry {
		if lock := p.readyLock(agent); lock.TryLock() { // else somebody is at it
			p.makeReady(ctx, agent)
			lock.Unlock()
		}
	}
}

// giveUp marks attempts whose time is over as unknown, then asks their agents to cancel what has not begun. The
// next contact makes them final.
func (p *Plane) giveUp(ctx context.Context, fs []*flight) {
	if len(fs) == 0 {
		return
	}

	rows := make([]record.Settlement, len(fs))
	for i, f := range fs {
		rows[i] = record.Settlement{Ref: f.ref, Op: f.op.ID, Agent: f.agent, To: gozzard.AttemptUnknown,
			Outcome: gozzard.Outcome{
				Code:    gozzard.CodeUnreachable,
				Message: "no answer from the host in time; whether it was done is not known yet and will be told at the next contact",
			}}
	}

	moved, err := p.o.Store.Settle(ctx, rows)
	if err != nil {
		p.o.Log.Error("cannot record attempts as unknown", "count", len(rows), "err", err)
	}

	cancel := map[gozzard.AgentID][]*flight{}
	p.mu.Lock()

	for i, f := range fs {
		if p.flights[f.op.ID] != f {
			continue
		}
		p.leaveWindow(f)
		if err == nil && moved[i] {
			f.state, f.tries, f.sent = gozzard.AttemptUnknown, 0, true
			p.vacate(f)
			cancel[f.agent] = append(cancel[f.agent], f)
		}
		p.schedule(f, p.o.Now().Add(p.o.Resend))
	}

	p.mu.Unlock()

	for agent, fs := range cancel {
		p.sendCancel(agent, fs)
	}
}

func (p *Plane) sendCancel(agent gozzard.AgentID, fs []*flight) {
	s := p.onlineSession(agent)
	if s.id == 0 {
		return
	}

	// What an older session left open is reconcile's to decide: the agent may have lost the journal that knew of it.
	fs = slices.DeleteFunc(fs, func(f *flight) bool { return f.session != s.id })
	for len(fs) > 0 {
		n := min(len(fs), 1000)
		cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandCancel, Session: s.id}
		for _, f := range fs[:n] {
			cmd.Cancel = append(cmd.Cancel, f.op.ID)
		}
		p.tell(agent, s.cloud, cmd)
		fs = fs[n:]
	}
}
