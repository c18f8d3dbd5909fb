package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

// businesses are all businesses in memory, as the newest record of each has them.
type businesses struct {
	applying sync.Mutex // one change at a time on this server; others are met by compare-and-set

	catching sync.Mutex // held by who brings the index up to what the fleet reported, so that nobody asks before it is

	putting sync.Mutex // held by who takes a business into memory, so that an older one never replaces a newer
	index   *index.Index

	mu    sync.RWMutex
	heads map[int]record.BusinessHead
}

// How often businesses are looked after while nobody asks: changes of the fleet are followed so that a question
// finds few, and what other servers recorded is read.
const (
	topologyFollow = time.Second
	topologyReload = 5 * time.Second
)

// loadTopology reads every business that is newer in the record than in memory.
func (p *Plane) loadTopology(ctx context.Context) error {
	if p.o.Topology == nil {
		return nil
	}

	heads, err := p.o.Topology.Businesses(ctx)
	if err != nil {
		return fmt.Errorf("cannot read businesses: %w", err)
	}

	for _, h := range heads {
		if p.businessVersion(h.ID) >= h.Version {
			continue
		}
		rec, err := p.o.Topology.Business(ctx, h.ID)
		if err != nil {
			return fmt.Errorf("cannot read business %d: %w", h.ID, err)
		}
		p.putBusiness(rec.BusinessHead, &rec.Business, rec.Numbers)
	}

	return nil
}

// topologyLoop keeps businesses up to date while nobody asks.
func (p *Plane) topologyLoop(ctx context.Context) {
	if p.o.Topology == nil {
		return
	}

	follow, reload := time.NewTicker(topologyFollow), time.NewTicker(min(topologyReload, p.o.Refresh))
	defer follow.Stop()
	defer reload.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-follow.C:
			p.catchUp()
		case <-reload.C:
			if err := p.loadTopology(ctx); err != nil && ctx.Err() == nil {
				p.o.Log.Error("cannot see what other servers recorded of businesses, trying again", "err", err)
			}
		}
	}
}

// putBusiness takes a recorded business into memory unless a newer one is there.
func (p *Plane) putBusiness(head record.BusinessHead, b *topology.Business, n []topology.Numbers) {
	t := &p.businesses
	t.putting.Lock()
	defer t.putting.Unlock()
	if p.businessVersion(head.ID) >= head.Version {
		return
	}
	t.index.Replace(b, n, p.lookAt)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heads[head.ID] = head
}

func (p *Plane) businessVersion(biz int) int64 {
	p.businesses.mu.RLock()
	defer p.businesses.mu.RUnlock()
	return p.businesses.heads[biz].Version
}

// catchUp brings the index up to what the fleet has reported until now. Changes are taken out of the live index
// with the lock held: whoever finds none has waited for those who are at it.
func (p *Plane) catchUp() {
	t := &p.businesses
	t.catching.Lock()
	defer t.catching.Unlock()
	if agents, addrs := p.o.Live.Changed(); len(agents)+len(addrs) > 0 {
		t.index.Refresh(agents, addrs, p.lookAt)
	}
}

func (p *Plane) lookAt(h topology.Host, keys []gozzard.Key, out []topology.Status) {
	p.o.Live.Look(h.Agent, h.Addr(), keys, func(i int, b fleet.Brief) { out[i] = topology.Status(b) })
}

// Businesses lists the businesses that are known and the caller may see, by id.
func (p *Plane) Businesses(caller gozzard.Caller) []record.BusinessHead {
	p.businesses.mu.RLock()
	list := slices.Collect(maps.Values(p.businesses.heads))
	p.businesses.mu.RUnlock()
	list = slices.DeleteFunc(list, func(h record.BusinessHead) bool { return !caller.Rights.SeesBusiness(h.ID) })
	slices.SortFunc(list, func(a, b record.BusinessHead) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Business reads what the caller may see of a business from the record.
func (p *Plane) Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error) {
	if p.o.Topology == nil {
		return record.Business{}, errNoTopology()
	}
	if !caller.Rights.SeesBusiness(biz) {
		return record.Business{}, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", biz)
	}
	rec, err := p.o.Topology.Business(ctx, biz)
	if err == nil {
		leaveOut(&rec, p.hostSight(caller.Rights, biz))
	}
	return rec, err
}

func errNoTopology() error {
	return gozzard.Errorf(gozzard.ErrUnavailable, "this server keeps no businesses")
}

// FindProcesses lists the processes of a business that fit a question, with what is known of them at this moment.
// total is how many fit. What the caller may not see does not fit.
func (p *Plane) FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row) {
	if !caller.Rights.SeesBusiness(q.Biz) {
		return 0, nil
	}
	q.Visible = p.hostSight(caller.Rights, q.Biz)
	p.catchUp()
	total, rows = p.businesses.index.Find(q)
	var keys []gozzard.Key
	for i := range rows {
		keys = p.complete(&rows[i], keys[:0])
	}
	return total, rows
}

// complete fills in what the index does not keep. What it was searched by stays as it was found: a process that
// ends at this very moment is still told as running, without a pid.
func (p *Plane) complete(r *topology.Row, keys []gozzard.Key) []gozzard.Key {
	for _, in := range r.Instances {
		keys = append(keys, topology.Key(r.Biz, r.Name, in.Local))
	}

	p.o.Live.Look(r.Host.Agent, r.Host.Addr(), keys, func(i int, b fleet.Brief) {
		s := &r.Instances[i].Status
		s.PID, s.ReportedAt, s.Stale = -1, b.ReportedAt, b.Stale
		if b.State == s.State {
			s.PID = b.PID
		}
		if i == 0 || b.ReportedAt < r.ReportedAt {
			r.ReportedAt = b.ReportedAt
		}
		r.Stale = r.Stale || b.Stale
	})

	return keys
}

// TopologyTree counts the processes of a business that the caller may see by set and module, as they are at this
// moment.
func (p *Plane) TopologyTree(caller gozzard.Caller, biz int, env topology.Env) []index.SetCount {
	if !caller.Rights.SeesBusiness(biz) {
		return nil
	}
	p.catchUp()
	return p.businesses.index.Tree(biz, env, p.hostSight(caller.Rights, biz))
}
