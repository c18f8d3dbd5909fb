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

// wakeLoop looks at the agents of tasks that other servers accepted for agents of this one.
func (s *peers) wakeLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case seq := <-s.wakes:
			list, err := s.o.Store.Attempts(ctx, seq)
			if err == nil {
				err = s.p.delivery.LookAt(ctx, agentsOf(slices.DeleteFunc(list, s.isElsewhere)))
			}
			if err != nil && ctx.Err() == nil {
				s.o.Log.Warn("cannot read a task that another server accepted; the server tries again soon", "task", seq,
					"err", err)
			}
		}
	}
}

// isHere reports whether an attempt belongs to an agent with a session at this server.
func (s *peers) isHere(a *gozzard.Attempt) bool {
	own, _, _ := s.p.delivery.Session(a.Agent)
	return own.ID != 0
}

func (s *peers) isElsewhere(a gozzard.Attempt) bool { return !s.isHere(&a) }

// sweepLoop sweeps from time to time, beside the loop that tells: while the record does not answer, the others must hear that
// this server lives.
func (s *peers) sweepLoop(ctx context.Context) {
	for pace.Sleep(ctx, peerSweep) == nil {
		s.sweep(ctx)
	}
}

// sweep compares what this server has in memory with the record. It drops what another server decided, looks at its agents
// where it misses something, and takes up what belongs to no server: the agent has no home.
func (s *peers) sweep(ctx context.Context) {
	// Drop what is decided.
	held := s.p.delivery.Held()
	open, err := s.o.Store.Open(ctx, "")
	if err != nil {
		s.sweepFailed(ctx, err)
		return
	}
	for i := range open {
		delete(held, open[i].Op)
	}
	s.p.delivery.Drop(slices.Collect(maps.Keys(held)))

	// Look at what is missing.
	missing := s.p.delivery.Missing(open)
	here := agentsOf(slices.DeleteFunc(slices.Clone(missing), s.isElsewhere))
	if err := s.p.delivery.LookAt(ctx, here); err != nil {
		s.sweepFailed(ctx, err)
	}
	if s.o.Now().Sub(s.p.started) <= s.o.Lease {
		return // agents are about to come back
	}
	err = s.takeUp(ctx, slices.DeleteFunc(missing, func(a gozzard.Attempt) bool {
		return s.isHere(&a) || !s.hasNoHome(a.Agent)
	}))
	if err != nil {
		s.sweepFailed(ctx, err)
	}
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
func (s *peers) takeUp(ctx context.Context, list []gozzard.Attempt) error {
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
