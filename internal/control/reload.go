package control

import (
	"context"
	"math"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TellChanged tells all other servers that this one changed recorded facts of these kinds.
func (p *Plane) TellChanged(kinds []string) {
	p.peers.note(func(news *gozzard.PeerNews) { news.Changed = append(news.Changed, kinds...) })
}

// ReloadGroups sends the limits of process groups to the agents of this server: another server changed some.
func (p *Plane) ReloadGroups(ctx context.Context) error {
	for part := range slices.Chunk(p.delivery.Online(), 1000) {
		p.sendGroups(ctx, part)
	}
	return nil
}

// ReloadBusinesses reads the businesses that another server changed.
func (p *Plane) ReloadBusinesses(ctx context.Context) error { return p.businesses.load(ctx) }

// ReloadHosts takes away the hosts that another server has forgotten, and reads which host has which processes.
func (p *Plane) ReloadHosts(ctx context.Context) error {
	// Look into memory before the record: what is in memory by now and not in the record then was removed from it.
	before := p.o.Live.Hosts(gozzard.Everything())
	_, rows := p.o.Live.Find(gozzard.Everything(), fleet.Filter{}, 0, math.MaxInt)
	hosts, err := p.o.Store.Hosts(ctx)
	if err != nil {
		return err
	}

	// The hosts.
	recorded := make(map[gozzard.AgentID]bool, len(hosts))
	for i := range hosts {
		recorded[hosts[i].Info.Agent] = true
	}
	for _, h := range before {
		if !recorded[h.Info.Agent] && p.delivery.OnlineSession(h.Info.Agent).ID == 0 {
			p.o.Live.Forget(h.Info.Agent)
		}
	}

	// The processes. A host that is online says itself which ones it has.
	processes := make(map[gozzard.ProcID]bool, len(rows))
	for rec, err := range p.o.Store.Processes(ctx, nil) {
		if err != nil {
			return err
		}
		processes[rec.ID] = true
		p.seed(rec.ID.Agent, seedStatus(&rec))
	}
	for i := range rows {
		id := gozzard.ProcID{Agent: rows[i].Agent, Key: rows[i].Status.Key}
		if h, known := p.o.Live.Host(id.Agent); known && !h.Online && !processes[id] {
			p.o.Live.Remove(id.Agent, id.Key)
		}
	}
	return nil
}
