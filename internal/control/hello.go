package control

import (
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

func (p *Plane) helloLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-p.hellos:
			lock := p.readyLock(h.from)
			lock.Lock()
			err := p.openSession(ctx, h)
			lock.Unlock()
			if err != nil && ctx.Err() == nil {
				p.o.Log.Error("cannot open a session, the agent will say HELLO again", "agent", h.from, "err", err)
			}
		}
	}
}

// openSession registers a session, welcomes the agent and decides about every attempt that an older session left open.
func (p *Plane) openSession(ctx context.Context, h hello) error {
	r := h.report
	info := r.Hello.Host
	info.Agent = h.from
	info.Addrs = slices.DeleteFunc(slices.Clone(info.Addrs),
		func(a gozzard.HostAddr) bool { return a.Cloud != h.cloud || !a.IP.IsValid() })

	now := p.o.Now()
	rec, opened, err := p.o.Store.OpenSession(ctx,
		record.Host{Info: info, Session: r.Session, Journal: r.Journal, LastSeen: now, Protocol: r.Version})
	if err != nil {
		return err
	}
	if !opened && r.Version < rec.Protocol {
		p.downgraded(h.from, r.Version, rec.Protocol)
		return nil
	}

	if !opened {
		p.mu.Lock()
		s := p.sessions[h.from]
		// The same number from another run of the agent, or another journal, is not a repeat: the agent has lost
		// its count with its state.
		again := s != nil && s.id == r.Session && s.run == r.Hello.Run && rec.Journal.ID == r.Journal.ID
		p.mu.Unlock()
		switch {
		case again: // our Welcome was lost
			p.welcome(h)
		default:
			// Registered by another run of the server, or the agent lost count: only a session newer than every one
			// seen can be reconciled.
			p.refuse("old_session", h.from)
			p.tell(h.from, h.cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGreet,
				Session: rec.Session})
		}
		return nil
	}

	p.mu.Lock()

	if s := p.sessions[h.from]; s == nil || gozzard.MayOpenSession(s.id, r.Session) {
		p.sessions[h.from] = &session{id: r.Session, run: r.Hello.Run, cloud: h.cloud, heard: now, online: true,
			protocol: max(rec.Protocol, lowestProtocol)}
	}

	p.mu.Unlock()
	lost := p.lostState(h.from, rec)
	p.o.Live.PutHost(fleet.Host{Info: info, Session: r.Session, Online: true, LastSeen: now})
	p.welcome(h)
	p.sendGroups(ctx, []gozzard.AgentID{h.from})

	if err := p.settleOld(ctx, h, rec); err != nil {
		return err
	}

	p.relayLost(h.from, lost)
	return nil
}

// settleOld reconciles until the record takes it: the session is open, so the agent will not say HELLO again by itself.
func (p *Plane) settleOld(ctx context.Context, h hello, rec record.Host) error {
	for {
		err := p.reconcile(ctx, h, rec)
		if err == nil {
			p.makeReady(ctx, h.from)
			return nil
		}
		if p.onlineSession(h.from).id != h.report.Session {
			return err // a newer session or silence: whoever comes next decides
		}
		p.o.Log.Error("cannot reconcile a session, trying again", "agent", h.from, "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.o.Resend):
		}
	}
}

// makeReady sends what waits for an agent, oldest first, until nothing does, and only then lets new operations go
// straight to it: one process sees its operations in the order of their tasks. readyLock is held.
func (p *Plane) makeReady(ctx context.Context, agent gozzard.AgentID) {
	for p.release(ctx, agent) {
		p.mu.Lock()
		done := len(p.waiting[agent]) == 0
		if s := p.sessions[agent]; s != nil && done {
			s.ready = true
		}
		p.mu.Unlock()
		if done {
			return
		}
	}
}

func (p *Plane) welcome(h hello) {
	p.tell(h.from, h.cloud, &gozzard.Command{
		Version: gozzard.ProtocolVersion, Kind: gozzard.CommandWelcome, Session: h.report.Session,
		Beat: h.report.Hello.Run, Interval: p.o.Interval,
	})
}

// reconcile decides about the attempts of one agent that older sessions left open, from what its HELLO says of them.
func (p *Plane) reconcile(ctx context.Context, h hello, rec record.Host) error {
	r := h.report
	open, err := p.o.Store.Open(ctx, h.from)
	if err != nil {
		return err
	}

	known := make(map[gozzard.OpID]*gozzard.OpReport, len(r.Hello.Open))
	for i := range r.Hello.Open {
		known[r.Hello.Open[i].ID] = &r.Hello.Open[i]
	}

	if rec.JournalSince == r.Session && r.Session > 1 {
		p.o.Log.Warn("the journal of a host is not the one seen before, or an older copy of it", "agent", h.from)
	}

	var final []settle
	var requeue []record.Settlement
	seen := map[gozzard.OpID]bool{}
	now := p.o.Now()
	for i := range open {
		a := &open[i]
		rep := known[a.Op]
		if rep == nil {
			rep = &gozzard.OpReport{ID: a.Op, Ref: a.Ref, Phase: gozzard.PhaseAbsent}
		} else {
			seen[a.Op] = true
			p.markBegun(a.Op, rep.Phase)
		}
		next, ok := gozzard.Reconcile(a.State, a.Session, !a.Deadline.After(now),
			gozzard.Contact{Session: r.Session, Phase: rep.Phase,
				SameJournal: gozzard.SameJournal(a.Session, rec.JournalSince)}, rep.Outcome.Code)
		if !ok {
			continue
		}
		row := record.Settlement{Ref: a.Ref, Op: a.Op, Agent: h.from, To: next, FromSession: a.Session,
			Journal: &r.Journal, Outcome: reconciled(next, rep)}
		if next == gozzard.AttemptPending {
			requeue = append(requeue, row)
			continue
		}
		row.Process = p.processChange(h.from, a.Key, a.Action, row.Outcome)
		final = append(final, settle{row: row, cloud: h.cloud, session: r.Session})
	}

	if err := p.settleAll(ctx, final); err != nil {
		return err
	}

	p.forget(h, seen)
	return p.requeue(ctx, requeue)
}

// forget acknowledges verdicts that the record has already, or that belong to tasks long pruned.
func (p *Plane) forget(h hello, open map[gozzard.OpID]bool) {
	cmd := &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck, Session: h.report.Session}
	for _, rep := range h.report.Hello.Open {
		if p.foreign(rep.ID, h.from) {
			p.forged("foreign_operation", h.from)
			continue
		}
		if _, decided := gozzard.Finalise(rep.Phase, rep.Outcome.Code); decided && !open[rep.ID] {
			cmd.Acked = append(cmd.Acked, rep.ID)
		}
	}

	if len(cmd.Acked) > 0 {
		p.tell(h.from, h.cloud, cmd)
	}
}

// foreign reports whether an operation under way is another agent's.
func (p *Plane) foreign(id gozzard.OpID, from gozzard.AgentID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flights[id]
	return f != nil && f.agent != from
}

// requeue puts attempts that provably never began back to pending; release sends them in the new session.
func (p *Plane) requeue(ctx context.Context, rows []record.Settlement) error {
	if len(rows) == 0 {
		return nil
	}

	moved, err := p.o.Store.Settle(ctx, rows)
	p.launchCommitted()
	if err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	for i := range rows {
		f := p.flights[rows[i].Op]
		if f == nil || !moved[i] {
			continue
		}
		p.leaveWindow(f)
		f.state, f.session, f.sent, f.begun, f.prev = gozzard.AttemptPending, 0, false, false, nil
		f.expires = f.deadline
		p.hold(f, f.expires)
	}

	return nil
}

// markBegun notes that the agent has an operation, so that it is not repeated.
func (p *Plane) markBegun(id gozzard.OpID, phase gozzard.Phase) {
	if phase == gozzard.PhaseAbsent {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.flights[id]; f != nil {
		f.begun = true
		p.leaveWindow(f)
	}
}

// reconciled gives the outcome of an attempt that was decided by a HELLO.
func reconciled(next gozzard.AttemptState, rep *gozzard.OpReport) gozzard.Outcome {
	if rep.Phase != gozzard.PhaseAbsent {
		return describe(rep)
	}
	switch next {
	case gozzard.AttemptInterrupted:
		return gozzard.Outcome{Code: gozzard.CodeInterrupted,
			Message: "interrupted: the host lost its journal or the server its record, so it is not known whether this was done; it was done at most once and is not repeated by itself"}
	case gozzard.AttemptNotExecuted:
		return gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "not executed: it never reached the host"}
	}
	return gozzard.Outcome{}
}
