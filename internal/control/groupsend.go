package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// maxGroupsSent bounds one command; a host has far fewer pools.
const maxGroupsSent = 4096

// groupLoop says the pools of hosts again from time to time: what was lost on the way, or set by another server,
// gets there in the end.
func (p *Plane) groupLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.o.Refresh):
		}
		p.mu.Lock()
		agents := make([]gozzard.AgentID, 0, len(p.sessions))
		for agent, s := range p.sessions {
			if s.online {
				agents = append(agents, agent)
			}
		}
		p.mu.Unlock()
		for part := range slices.Chunk(agents, 1000) {
			p.sendGroups(ctx, part)
		}
	}
}

// sendGroups tells agents all their pools. Nobody waits for it: they are told again with every session and by
// groupLoop.
func (p *Plane) sendGroups(ctx context.Context, agents []gozzard.AgentID) {
	agents = slices.Compact(slices.Sorted(slices.Values(agents)))
	rows, err := p.o.Store.Groups(ctx, "", agents)
	if err != nil {
		if ctx.Err() == nil {
			p.o.Log.Error("cannot read process groups, hosts are told later", "hosts", len(agents), "err", err)
		}
		return
	}

	byAgent := make(map[gozzard.AgentID][]gozzard.Group, len(agents))
	for i := range rows {
		r := &rows[i]
		byAgent[r.Agent] = append(byAgent[r.Agent], gozzard.Group{
			Namespace: r.Namespace, ID: r.Group, CPULimit: r.CPULimit, MemLimit: r.MemLimit, CPUWeight: r.CPUWeight,
			MemWeight: r.MemWeight,
		})
	}

	for _, agent := range agents {
		s := p.onlineSession(agent)
		if s.id == 0 {
			continue
		}
		groups := byAgent[agent] // none is told too: the host may have some from before
		slices.SortFunc(groups, func(a, b gozzard.Group) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
		})
		if len(groups) > maxGroupsSent {
			p.o.Log.Error("host has too many process groups, only the first are sent", "agent", agent, "groups",
				len(groups), "most", maxGroupsSent)
			groups = groups[:maxGroupsSent]
		}
		p.tell(agent, s.cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGroups,
			Session: s.id, Groups: groups})
	}
}
