package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/record"
)

// awaitPause is between two looks at a task that a caller waits for.
const awaitPause = 30 * time.Millisecond

// snapshotStatuses is how many statuses one report of a snapshot has.
const snapshotStatuses = 500

// snapshotRound is the first round of the full reports in snapshots. Agents never reach it by counting.
const snapshotRound = 1 << 62

// snapshotLoop tells everything to servers that ask for it.
func (s *peers) snapshotLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case to := <-s.asked:
			s.tellEverything(ctx, to)
		}
	}
}

// tellEverything tells a server what this one knows of its agents.
func (s *peers) tellEverything(ctx context.Context, to string) {
	n := &gozzard.PeerNews{Snapshot: true}
	statuses := 0
	flush := func() {
		s.send(to, n)
		n, statuses = &gozzard.PeerNews{Snapshot: true}, 0
	}

	for agent, session := range s.p.delivery.Homes() {
		if ctx.Err() != nil {
			return
		}
		h, ok := s.o.Live.Host(agent)
		if !ok {
			continue
		}
		reports, rows := s.everythingOf(agent, session, &h.Info)
		if len(n.Reports) > 0 && statuses+rows > snapshotStatuses {
			flush()
		}
		n.Reports, statuses = append(n.Reports, reports...), statuses+rows
		if !h.Online {
			n.Silent = append(n.Silent, gozzard.PeerSilent{Agent: agent, Session: session.ID, Since: h.LastSeen})
		}
		if len(n.Reports) >= peerItems {
			flush()
		}
	}
	n.Last = true
	flush()
}

// everythingOf describes a host and its processes.
func (s *peers) everythingOf(agent gozzard.AgentID, session delivery.Session, info *gozzard.HostInfo) (
	list []gozzard.PeerReport, rows int) {
	add := func(r *gozzard.Report) {
		list = append(list, gozzard.PeerReport{Agent: agent, Cloud: session.Cloud, Report: r})
	}
	add(helloReport(session.ID, info))

	statuses, whole := s.o.Live.Statuses(agent)
	if !whole { // the host has not reported all since it opened its session
		return list, 0
	}
	s.mu.Lock()
	s.marks++
	round := snapshotRound + s.marks
	s.mu.Unlock()
	parts := max((len(statuses)+snapshotStatuses-1)/snapshotStatuses, 1)
	for i := range parts {
		part := statuses[i*snapshotStatuses : min((i+1)*snapshotStatuses, len(statuses))]
		add(&gozzard.Report{Version: gozzard.ProtocolVersion, Kind: gozzard.ReportStatus, Session: session.ID,
			Round: round, Part: uint32(i), Parts: uint32(parts), Statuses: part})
	}
	return list, len(statuses)
}

// wakeLoop takes up tasks that other servers accepted for agents of this one.
func (s *peers) wakeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case seq := <-s.wakes:
			list, err := s.o.Store.Attempts(ctx, seq)
			if err != nil {
				s.o.Log.Warn("cannot read a task that another server accepted; the server tries again soon", "task", seq, "err", err)
				continue
			}
			s.takeUp(ctx, list, s.isHere)
		}
	}
}

// isHere reports whether an attempt belongs to an agent with a session at this server.
func (s *peers) isHere(a *gozzard.Attempt) bool {
	own, _, _ := s.p.delivery.Session(a.Agent)
	return own.ID != 0
}

// sweep compares what this server has in memory with the record. It takes up what it missed, and what belongs to no
// server: the agent has no home. It drops what another server decided.
func (s *peers) sweep(ctx context.Context) {
	held := s.p.delivery.Held()
	open, err := s.o.Store.Open(ctx, "")
	if err != nil {
		if ctx.Err() == nil {
			s.o.Log.Warn("cannot compare the open operations with the record; the server tries again soon", "err", err)
		}
		return
	}

	// Drop what is decided, and what differs from the record for longer than a write takes.
	for i := range open {
		delete(held, open[i].Op)
	}
	drop := slices.Collect(maps.Keys(held))
	differs := map[gozzard.OpID]bool{}
	for _, id := range s.p.delivery.Differ(open) {
		if differs[id] = true; s.differed[id] {
			drop = append(drop, id)
		}
	}
	s.differed = differs
	s.p.delivery.Drop(drop)

	// Take up what is missing.
	homeless := s.o.Now().Sub(s.p.started) > s.o.Lease // before, agents are about to come back
	s.takeUp(ctx, open, func(a *gozzard.Attempt) bool {
		return s.isHere(a) && a.State == gozzard.AttemptPending || homeless && !s.isHere(a) && s.hasNoHome(a.Agent)
	})
	if err := s.look(ctx, open); err != nil && ctx.Err() == nil {
		s.o.Log.Warn("cannot take up operations of the record; the server tries again soon", "err", err)
	}
}

// look decides about attempts of its agents that are dispatched or unknown in the record and that this server does not have
// (gozzard.OnLook): a write was not answered, or another server still believed to be the home.
func (s *peers) look(ctx context.Context, open []gozzard.Attempt) error {
	var list []gozzard.Attempt
	for i := range open {
		if open[i].State != gozzard.AttemptPending && s.p.delivery.Decided(open[i].Agent).ID != 0 {
			list = append(list, open[i])
		}
	}
	if list = s.p.delivery.Missing(list); len(list) == 0 {
		return nil
	}

	// The sessions are read after the attempts. They only grow, so one that is still the own one was so before.
	hosts, err := s.o.Store.Hosts(ctx)
	if err != nil {
		return err
	}
	registered := make(map[gozzard.AgentID]uint64, len(hosts))
	for i := range hosts {
		registered[hosts[i].Info.Agent] = hosts[i].Session
	}

	// Decide.
	var resume []gozzard.Attempt
	var settle []delivery.Settlement
	now := s.o.Now()
	for i := range list {
		a := &list[i]
		do, next := gozzard.OnLook(s.p.delivery.Decided(a.Agent).ID, registered[a.Agent],
			gozzard.Sighting{State: a.State, Session: a.Session, Late: !a.Deadline.After(now)})
		switch do {
		case gozzard.LookLeave:
			s.p.delivery.LetGo(a.Agent, registered[a.Agent])
		case gozzard.LookHold:
			resume = append(resume, *a)
		case gozzard.LookSettle:
			settle = append(settle, lookSettlement(a, next))
		}
	}

	// Do it. What is pending again is taken up by the next sweep.
	if len(settle) > 0 {
		if _, err := (recorder{s.p}).Settle(ctx, settle); err != nil {
			return err
		}
	}
	apps, err := s.p.appsOf(ctx, resume)
	if err != nil {
		return err
	}
	s.p.delivery.Resume(resume, apps)
	return nil
}

// lookSettlement changes an attempt that was recorded for a session that had ended: it never began.
func lookSettlement(a *gozzard.Attempt, to gozzard.AttemptState) delivery.Settlement {
	row := delivery.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, Action: a.Action, Key: a.Key, To: to, From: a.State,
		FromSession: a.Session}
	if to == gozzard.AttemptNotExecuted {
		row.Outcome = gozzard.Outcome{Code: gozzard.CodeExpired, Message: "not executed: it was recorded for a connection of the host " +
			"that had ended, and its time is over"}
	}
	return row
}

// hasNoHome reports whether no server that is there has a session with an agent.
func (s *peers) hasNoHome(agent gozzard.AgentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.homes[agent]
	return !ok
}

// takeUp takes up attempts that this server does not have, if they are its own.
func (s *peers) takeUp(ctx context.Context, list []gozzard.Attempt, own func(*gozzard.Attempt) bool) {
	var mine []gozzard.Attempt
	for i := range list {
		if a := &list[i]; !a.State.Final() && own(a) {
			mine = append(mine, *a)
		}
	}
	mine = s.p.delivery.Missing(mine)
	if len(mine) == 0 {
		return
	}

	apps, err := s.p.appsOf(ctx, mine)
	if err != nil {
		s.o.Log.Warn("cannot read the tasks of open operations; the server tries again soon", "operations", len(mine), "err", err)
		return
	}
	s.p.delivery.TakeUp(ctx, mine, apps)
}

// split separates the attempts of a new task that wait for agents of other servers, and names these servers.
func (s *peers) split(list []gozzard.Attempt) (own []gozzard.Attempt, others map[string]bool) {
	if s == nil {
		return list, nil
	}
	own = make([]gozzard.Attempt, 0, len(list))
	for i := range list {
		server := ""
		if a := &list[i]; a.State == gozzard.AttemptPending && !s.isHere(a) {
			server, _ = s.homeOf(a.Agent)
		}
		if server == "" {
			own = append(own, list[i])
			continue
		}
		if others == nil {
			others = map[string]bool{}
		}
		others[server] = true
	}
	return own, others
}

// wakeOthers tells servers that a task has attempts for their agents.
func (s *peers) wakeOthers(servers map[string]bool, seq gozzard.TaskSeq) {
	for id := range servers {
		s.send(id, &gozzard.PeerNews{Wake: []gozzard.TaskSeq{seq}})
	}
}

// takeUpOf takes up the open attempts of an agent that opened a session here.
func (s *peers) takeUpOf(ctx context.Context, agent gozzard.AgentID) error {
	if s == nil {
		return nil
	}
	list, err := s.o.Store.Open(ctx, agent)
	if err != nil || len(list) == 0 {
		return err
	}
	list = s.p.delivery.Missing(list)
	apps, err := s.p.appsOf(ctx, list)
	if err != nil {
		return err
	}
	s.p.delivery.Restore(list, apps)
	return nil
}

// await blocks until a task that other servers deliver has no open attempt, or ctx ends.
func (s *peers) await(ctx context.Context, seq gozzard.TaskSeq) {
	for s != nil && ctx.Err() == nil {
		_, _, changed := s.p.taskFeed.after(0)
		verdicts, err := s.o.Store.TaskVerdicts(ctx, []gozzard.TaskSeq{seq})
		if err != nil {
			return
		}
		if !slices.ContainsFunc(verdicts, func(v record.TaskVerdict) bool { return !v.State.Final() }) {
			return
		}

		// Most news are about other tasks, so it looks no more often than this.
		select {
		case <-ctx.Done():
		case <-changed:
			time.Sleep(awaitPause)
		case <-time.After(time.Second):
		}
	}
}
