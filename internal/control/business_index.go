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
	o       *Options
	operate func(context.Context, *gozzard.Operation) (gozzard.Task, error)
	note    func(gozzard.AgentID, gozzard.HostAddr, gozzard.Event) // records an event; nil: nothing does

	applying sync.Mutex // one change at a time on this server; the compare-and-set decides between servers
	catching sync.Mutex // held while the index is brought up to what the fleet reported: questions wait for it
	putting  sync.Mutex // held while a business is taken into memory: an older one never replaces a newer one
	index    *index.Index

	mu    sync.RWMutex
	heads map[int]record.BusinessHead

	assignments assignments
	places      placeChanges
}

func newBusinesses(o *Options, operate func(context.Context, *gozzard.Operation) (gozzard.Task, error)) businesses {
	return businesses{o: o, operate: operate, index: index.New(), heads: map[int]record.BusinessHead{}}
}

// start reads all businesses.
func (t *businesses) start(ctx context.Context) error {
	if t.o.Topology != nil {
		t.o.Live.Changed() // from here on changes are noted; what is loaded now is read as a whole
	}
	return t.load(ctx)
}

// How often businesses are brought up to date without a question: changes of the fleet are followed so that a question
// finds few, and what other servers recorded is read.
const (
	topologyFollow = time.Second
	topologyReload = 5 * time.Second
)

// load reads every business that is newer in the record than in memory.
func (t *businesses) load(ctx context.Context) error {
	if t.o.Topology == nil {
		return nil
	}

	heads, err := t.o.Topology.Businesses(ctx)
	if err != nil {
		return fmt.Errorf("cannot read businesses: %w", err)
	}

	for _, h := range heads {
		if t.version(h.ID) >= h.Version {
			continue
		}
		if h.Removed() {
			t.put(h, &topology.Business{ID: h.ID}, nil)
			continue
		}
		rec, err := t.o.Topology.Business(ctx, h.ID)
		if err != nil {
			return fmt.Errorf("cannot read business %d: %w", h.ID, err)
		}
		t.put(rec.BusinessHead, &rec.Business, rec.Numbers)
	}

	return nil
}

// loop brings businesses up to date between questions.
func (t *businesses) loop(ctx context.Context) {
	if t.o.Topology == nil {
		return
	}

	follow, reload := time.NewTicker(topologyFollow), time.NewTicker(min(topologyReload, t.o.Refresh))
	defer follow.Stop()
	defer reload.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-follow.C:
			t.catchUp()
		case <-reload.C:
			if err := t.load(ctx); err != nil && ctx.Err() == nil {
				t.o.Log.Error("cannot read the businesses that other servers recorded, trying again", "err", err)
			}
		}
	}
}

// put takes a recorded business into memory unless a newer one is there.
func (t *businesses) put(head record.BusinessHead, b *topology.Business, n []topology.Numbers) {
	t.putting.Lock()
	defer t.putting.Unlock()
	if t.version(head.ID) >= head.Version {
		return
	}
	if head.Removed() {
		t.index.Remove(head.ID)
	} else {
		t.index.Replace(b, n, t.lookAt)
	}
	t.assignments.replace(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heads[head.ID] = head
	t.places.note(head.ID)
}

func (t *businesses) version(biz int) int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.heads[biz].Version
}

// catchUp brings the index up to what the fleet has reported until now. Changes are taken out of the live index with
// the lock held: a caller that finds none has waited until the last ones were applied.
func (t *businesses) catchUp() {
	t.catching.Lock()
	defer t.catching.Unlock()
	if agents, addrs := t.o.Live.Changed(); len(agents)+len(addrs) > 0 {
		t.index.Refresh(agents, addrs, t.lookAt)
	}
}

func (t *businesses) lookAt(h topology.Host, keys []gozzard.Key, out []topology.Status) {
	t.o.Live.Look(h.Agent, h.Addr(), keys, func(i int, b fleet.Brief) { out[i] = topology.Status(b) })
}

// Businesses lists the businesses that are known and the caller may see, by id.
func (t *businesses) Businesses(caller gozzard.Caller) []record.BusinessHead {
	t.mu.RLock()
	list := slices.Collect(maps.Values(t.heads))
	t.mu.RUnlock()
	list = slices.DeleteFunc(list, func(h record.BusinessHead) bool {
		return h.Removed() || !caller.Rights.SeesBusiness(h.ID)
	})
	for i := range list { // the sentences name hosts and processes, which a caller that sees a part of them may not see
		if !caller.Rights.SeesAll() && !caller.Rights.MayBusiness(list[i].ID) {
			list[i].Left = nil
		}
	}
	slices.SortFunc(list, func(a, b record.BusinessHead) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Business reads what the caller may see of a business from the record.
func (t *businesses) Business(ctx context.Context, caller gozzard.Caller, biz int) (record.Business, error) {
	if t.o.Topology == nil {
		return record.Business{}, errNoTopology()
	}
	if !caller.Rights.SeesBusiness(biz) {
		return record.Business{}, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", biz)
	}
	rec, err := t.o.Topology.Business(ctx, biz)
	if err == nil && rec.Removed() {
		return record.Business{}, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", biz)
	}
	if err == nil {
		leaveOut(&rec, t.hostSight(caller.Rights, biz))
	}
	return rec, err
}

func errNoTopology() error {
	return gozzard.Errorf(gozzard.ErrUnavailable, "this server has no businesses")
}

// FindProcesses lists the processes of a business that fit a question, with what is known of them at this moment.
// total is how many fit. What the caller may not see does not fit.
func (t *businesses) FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row) {
	if !caller.Rights.SeesBusiness(q.Biz) {
		return 0, nil
	}
	q.Visible = t.hostSight(caller.Rights, q.Biz)
	t.catchUp()
	total, rows = t.index.Find(q)
	var keys []gozzard.Key
	for i := range rows {
		keys = t.complete(&rows[i], keys[:0])
	}
	return total, rows
}

// complete fills in what the index does not have. What the question asked for stays as it was found: a process that
// ends at this very moment is still answered as running, without a pid.
func (t *businesses) complete(r *topology.Row, keys []gozzard.Key) []gozzard.Key {
	for _, in := range r.Instances {
		keys = append(keys, topology.Key(r.Biz, r.Name, in.Local))
	}

	t.o.Live.Look(r.Host.Agent, r.Host.Addr(), keys, func(i int, b fleet.Brief) {
		s := &r.Instances[i].Status
		s.PID, s.ReportedAt, s.Stale, s.Condition = -1, b.ReportedAt, b.Stale, b.Condition
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
func (t *businesses) TopologyTree(caller gozzard.Caller, biz int, env topology.Env) []index.SetCount {
	if !caller.Rights.SeesBusiness(biz) {
		return nil
	}
	t.catchUp()
	return t.index.Tree(biz, env, t.hostSight(caller.Rights, biz))
}
