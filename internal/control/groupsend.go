package control

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/pace"
)

// maxGroupsSent bounds one command; a host has far fewer pools.
const maxGroupsSent = 4096

// groupLoop sends the pools of hosts again from time to time: what was lost on the way, or set by another server,
// arrives in the end. It also forgets results that are polled no more.
func (p *Plane) groupLoop(ctx context.Context) {
	for pace.Sleep(ctx, p.o.Refresh) == nil {
		p.results.tidy()
		for part := range slices.Chunk(p.delivery.Online(), 1000) {
			p.sendGroups(ctx, part)
		}
	}
}

// sendGroups sends agents all their pools. Nothing waits for an answer: they are sent again with every session and by
// groupLoop.
func (p *Plane) sendGroups(ctx context.Context, agents []gozzard.AgentID) {
	agents = slices.Compact(slices.Sorted(slices.Values(agents)))
	byAgent, err := p.readGroups(ctx, agents)
	if err != nil {
		if ctx.Err() == nil {
			p.o.Log.Error("cannot read process groups, trying again later", "hosts", len(agents), "err", err)
		}
		return
	}
	for _, agent := range agents {
		p.sendGroupsOf(agent, byAgent[agent])
	}
}

// sendGroupsTogether is sendGroups for one agent. Calls at the same time share one read of the record: a fleet that comes
// back would read it once for each host.
func (p *Plane) sendGroupsTogether(ctx context.Context, agent gozzard.AgentID) {
	read := p.groupReads.join(agent, func(agents []gozzard.AgentID) (map[gozzard.AgentID][]gozzard.Group, error) {
		return p.readGroups(ctx, agents)
	})
	if read.err != nil {
		if ctx.Err() == nil {
			p.o.Log.Error("cannot read process groups, trying again later", "agent", agent, "err", read.err)
		}
		return
	}
	p.sendGroupsOf(agent, read.byAgent[agent])
}

// readGroups reads the pools of agents, in order.
func (p *Plane) readGroups(ctx context.Context, agents []gozzard.AgentID) (map[gozzard.AgentID][]gozzard.Group, error) {
	rows, err := p.o.Store.Groups(ctx, "", agents)
	if err != nil {
		return nil, err
	}

	byAgent := map[gozzard.AgentID][]gozzard.Group{}
	for i := range rows {
		r := &rows[i]
		byAgent[r.Agent] = append(byAgent[r.Agent], gozzard.Group{
			Namespace: r.Namespace, ID: r.Group, CPULimit: r.CPULimit, MemLimit: r.MemLimit, CPUWeight: r.CPUWeight,
			MemWeight: r.MemWeight,
		})
	}
	for _, groups := range byAgent {
		slices.SortFunc(groups, func(a, b gozzard.Group) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
		})
	}
	return byAgent, nil
}

// sendGroupsOf sends an agent its pools if it is online. None is sent too: the host may have some from before.
func (p *Plane) sendGroupsOf(agent gozzard.AgentID, groups []gozzard.Group) {
	s := p.delivery.OnlineSession(agent)
	if s.ID == 0 {
		return
	}
	if len(groups) > maxGroupsSent {
		p.o.Log.Error("a host has too many process groups, only the first are sent", "agent", agent, "groups",
			len(groups), "limit", maxGroupsSent)
		groups = groups[:maxGroupsSent]
	}
	p.delivery.Send(agent, s.Cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGroups,
		Session: s.ID, Groups: groups})
}

// groupReads lets callers at the same time share one read: while one read runs, the next ones collect.
type groupReads struct {
	mu      sync.Mutex
	next    *groupRead // collects; nil: none does
	reading sync.Mutex
}

// groupRead is one read for several agents. What it read may be used when done is closed.
type groupRead struct {
	agents  []gozzard.AgentID
	done    chan struct{}
	byAgent map[gozzard.AgentID][]gozzard.Group
	err     error
}

// join adds an agent to the next read and waits for it. The first one to join does the reading.
func (g *groupReads) join(agent gozzard.AgentID,
	read func([]gozzard.AgentID) (map[gozzard.AgentID][]gozzard.Group, error)) *groupRead {
	g.mu.Lock()
	r := g.next
	first := r == nil
	if first {
		r = &groupRead{done: make(chan struct{})}
		g.next = r
	}
	r.agents = append(r.agents, agent)
	g.mu.Unlock()
	if !first {
		<-r.done
		return r
	}

	g.reading.Lock()
	defer g.reading.Unlock()
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	r.byAgent, r.err = read(r.agents)
	close(r.done)
	return r
}
