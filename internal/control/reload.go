package control

import (
	"context"
	"slices"

	"github.com/gozzard/gozzard"
)

// TellChanged tells all other servers that this one changed recorded facts of these kinds.
func (p *Plane) TellChanged(kinds []string) {
	p.peers.note(func(o *outbox) { o.news.Changed = append(o.news.Changed, kinds...) })
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
	registered := p.o.Live.Seeded()
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

	// The processes.
	processes := make(map[gozzard.ProcID]bool, len(registered))
	for rec, err := range p.o.Store.Processes(ctx, nil) {
		if err != nil {
			return err
		}
		processes[rec.ID] = true
		p.seed(rec.ID.Agent, seedStatus(&rec))
	}
	return p.unregister(ctx, slices.DeleteFunc(registered, func(id gozzard.ProcID) bool { return processes[id] }))
}

// unregister takes away processes that are not in the record any more. No task is launched meanwhile: one that registers such a
// process again adds it again. A host that is online says itself which processes it has.
func (p *Plane) unregister(ctx context.Context, ids []gozzard.ProcID) error {
	p.launcher.order.Lock()
	defer p.launcher.order.Unlock()
	recs, err := recorded(ctx, p.o.Store, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := recs[id]; ok {
			continue
		}
		if h, known := p.o.Live.Host(id.Agent); known && h.Online {
			p.o.Live.Unseed(id.Agent, id.Key)
		} else {
			p.o.Live.Remove(id.Agent, id.Key)
		}
	}
	return nil
}
