package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
	"github.com/gozzard/gozzard/internal/pace"
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

// tellEverything tells a server what this one knows of its agents. News are sent only between two messages that are
// whole, because they are newer.
func (s *peers) tellEverything(ctx context.Context, to string) {
	s.telling.Lock()
	defer s.telling.Unlock()
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
		for _, r := range s.everythingOf(agent, session, &h.Info) {
			if len(n.Reports) > 0 && statuses+len(r.Report.Statuses) > snapshotStatuses {
				flush()
			}
			n.Reports, statuses = append(n.Reports, r), statuses+len(r.Report.Statuses)
		}
		if !h.Online {
			n.Silent = append(n.Silent, gozzard.PeerSilent{Agent: agent, Session: session.ID, Since: h.LastSeen})
		}
		if len(n.Reports) >= peerItems || statuses >= snapshotStatuses*9/10 {
			flush()
			s.telling.Unlock()
			s.telling.Lock()
		}
	}
	n.Last = true
	flush()
}

// everythingOf describes a host and its processes.
func (s *peers) everythingOf(agent gozzard.AgentID, session delivery.Session, info *gozzard.HostInfo) (
	list []gozzard.PeerReport) {
	add := func(r *gozzard.Report) {
		list = append(list, gozzard.PeerReport{Agent: agent, Cloud: session.Cloud, Report: r})
	}
	add(helloReport(session.ID, session.Run, info))

	statuses, whole := s.o.Live.Statuses(agent)
	if !whole { // the host has not reported all since it opened its session
		return list
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
	return list
}

// wakers is how many tasks of other servers are looked at at a time, so that a small one does not wait for a large one.
const wakers = 4

// wakeLoop looks at the agents of tasks that other servers accepted for agents of this one.
func (s *peers) wakeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case seq := <-s.wakes:
			list, err := s.o.Store.OpenOps(ctx, seq)
			if err == nil {
				err = s.p.delivery.LookAt(ctx, s.ownAgents(list))
			}
			if err != nil && ctx.Err() == nil {
				s.o.Log.Warn("cannot read a task that another server accepted; the server tries again soon", "task", seq,
					"err", err)
			}
		}
	}
}

// isHere reports whether an agent has a session at this server.
func (s *peers) isHere(agent gozzard.AgentID) bool {
	own, _, _ := s.p.delivery.Session(agent)
	return own.ID != 0
}

// ownAgents lists the agents of this server among those of attempts.
func (s *peers) ownAgents(list []record.OpenOp) []gozzard.AgentID {
	var agents []gozzard.AgentID
	for i := range list {
		agents = append(agents, list[i].Agent)
	}
	slices.Sort(agents)
	return slices.DeleteFunc(slices.Compact(agents), func(agent gozzard.AgentID) bool { return !s.isHere(agent) })
}

// sweepLoop sweeps from time to time, beside the loop that tells: while the record does not answer, the others must hear that
// this server lives.
func (s *peers) sweepLoop(ctx context.Context) {
	var next time.Time // of a reading of all registered processes
	for pace.Sleep(ctx, peerSweep) == nil {
		s.sweep(ctx)
		if began := time.Now(); began.After(next) && s.reload(ctx) {
			next = time.Now().Add(peerShare * time.Since(began))
		}
	}
}

// reload reads all registered processes, if news of some may have been missed.
func (s *peers) reload(ctx context.Context) (done bool) {
	s.mu.Lock()
	stale := s.stale
	s.stale = false
	s.mu.Unlock()
	if !stale {
		return false
	}

	err := s.p.ReloadHosts(ctx)
	if err != nil {
		s.mu.Lock()
		s.stale = true
		s.mu.Unlock()
		s.sweepFailed(ctx, err)
	}
	return err == nil
}

// sweep compares what this server has in memory with the record. It drops what another server decided, looks at its agents
// where it misses something, and takes up what belongs to no server: the agent has no home.
func (s *peers) sweep(ctx context.Context) {
	// Drop what is decided.
	held := s.p.delivery.Held()
	open, err := s.o.Store.OpenOps(ctx, 0)
	if err != nil {
		s.sweepFailed(ctx, err)
		return
	}
	for i := range open {
		delete(held, open[i].Op)
	}
	s.p.delivery.Drop(slices.Collect(maps.Keys(held)))

	// Look at what is missing.
	missing := s.missing(open)
	if err := s.p.delivery.LookAt(ctx, s.ownAgents(missing)); err != nil {
		s.sweepFailed(ctx, err)
	}
	if s.o.Now().Sub(s.p.started) <= s.o.Lease {
		return // agents are about to come back
	}
	homeless := slices.DeleteFunc(missing, func(a record.OpenOp) bool { return s.isHere(a.Agent) || !s.hasNoHome(a.Agent) })
	if err := s.takeUp(ctx, homeless); err != nil {
		s.sweepFailed(ctx, err)
	}
}

// missing keeps the attempts that this server does not have.
func (s *peers) missing(open []record.OpenOp) []record.OpenOp {
	ids := make([]gozzard.OpID, len(open))
	for i := range open {
		ids[i] = open[i].Op
	}
	lacks := map[gozzard.OpID]bool{}
	for _, id := range s.p.delivery.MissingOps(ids) {
		lacks[id] = true
	}
	return slices.DeleteFunc(open, func(a record.OpenOp) bool { return !lacks[a.Op] })
}

func (s *peers) sweepFailed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.o.Log.Warn("cannot compare the open operations with the record; the server tries again soon", "err", err)
	}
}

// hasNoHome reports whether no server that is there has a session with an agent.
func (s *peers) hasNoHome(agent gozzard.AgentID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.homes[agent]
	return !ok
}

// takeUp takes up attempts that no server has.
func (s *peers) takeUp(ctx context.Context, ops []record.OpenOp) error {
	if len(ops) == 0 {
		return nil
	}
	wanted := make(map[gozzard.OpID]bool, len(ops))
	var agents []gozzard.AgentID
	for i := range ops {
		wanted[ops[i].Op], agents = true, append(agents, ops[i].Agent)
	}
	slices.Sort(agents)
	list, err := s.o.Store.OpenOf(ctx, slices.Compact(agents))
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(a gozzard.Attempt) bool { return !wanted[a.Op] })
	apps, err := s.p.appsOf(ctx, list)
	if err != nil {
		return err
	}
	s.p.delivery.Restore(list, apps)
	return nil
}

// split separates the attempts of a new task that wait for agents of other servers, and names these servers.
func (s *peers) split(list []gozzard.Attempt) (own []gozzard.Attempt, others map[string]bool) {
	if s == nil {
		return list, nil
	}
	own = make([]gozzard.Attempt, 0, len(list))
	for i := range list {
		server := ""
		if a := &list[i]; a.State == gozzard.AttemptPending && !s.isHere(a.Agent) {
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
			_ = pace.Sleep(ctx, awaitPause) // the loop ends with ctx
		case <-time.After(time.Second):
		}
	}
}
