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

// groupLoop sends the pools of hosts again from time to time: what was lost on the way, or set by another server,
// arrives in the end. It also forgets results that are polled no more.
func (p *Plane) groupLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.o.Refresh):
		}
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
	rows, err := p.o.Store.Groups(ctx, "", agents)
	if err != nil {
		if ctx.Err() == nil {
			p.o.Log.Error("cannot read process groups, trying again later", "hosts", len(agents), "err", err)
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
		s := p.delivery.OnlineSession(agent)
		if s.ID == 0 {
			continue
		}
		groups := byAgent[agent] // none is sent too: the host may have some from before
		slices.SortFunc(groups, func(a, b gozzard.Group) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
		})
		if len(groups) > maxGroupsSent {
			p.o.Log.Error("a host has too many process groups, only the first are sent", "agent", agent, "groups",
				len(groups), "limit", maxGroupsSent)
			groups = groups[:maxGroupsSent]
		}
		p.delivery.Send(agent, s.Cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandGroups,
			Session: s.ID, Groups: groups})
	}
}
