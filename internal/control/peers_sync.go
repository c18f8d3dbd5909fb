package control

import (
	"context"
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

	for i := range open {
		delete(held, open[i].Op)
	}
	decided := make([]gozzard.OpID, 0, len(held))
	for id := range held {
		decided = append(decided, id)
	}
	s.p.delivery.Drop(decided)

	homeless := s.o.Now().Sub(s.p.started) > s.o.Lease // before, agents are about to come back
	s.takeUp(ctx, open, func(a *gozzard.Attempt) bool {
		return s.isHere(a) || homeless && s.hasNoHome(a.Agent)
	})
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
