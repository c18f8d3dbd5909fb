package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/topology"
)

// The pace and the bounds of the hub.
const (
	tickEvery    = 250 * time.Millisecond
	scanPart     = 4096    // rows that are read under one lock
	passRows     = 1 << 16 // rows of one batch at most: a larger change is sent in several
	maxAudiences = 200
	idleTime     = 3 * time.Minute // a viewer that comes back within it goes on where it was
)

// Options are the parts of a hub.
type Options struct {
	Fleet  *fleet.Index
	Places Places // nil: nothing is in a business
	Log    *slog.Logger
}

// Places says where processes are in businesses.
type Places interface {
	// PlaceOf is the place of a process, zero if it has none.
	PlaceOf(host gozzard.HostRef, key gozzard.Key) topology.Place
	// PlacesChanged lists the namespaces whose places may have changed since a generation, and the present generation.
	PlacesChanged(since uint64) (namespaces []string, generation uint64)
}

// Hub follows the fleet for all viewers. While it has none it does nothing, and the fleet records nothing for it. All
// methods are safe for concurrent use.
type Hub struct {
	o   Options
	log *slog.Logger

	mu        sync.Mutex
	audiences map[string]*audience
	wake      chan struct{}        // has room for one: there is an audience
	expected  chan *gozzard.Rights // has room for one: of a viewer that will come

	hostMu sync.RWMutex
	hosts  []*fleet.LiveHost // by number; an entry is never changed, only replaced by a newer one

	generation atomic.Uint64 // of places
	placed     atomic.Uint32 // counts generations, for cells

	viewers, encoded, sent atomic.Uint64

	// Used by Run only.
	rowIDs, hostIDs []uint32
	rows            []fleet.LiveRow
	on              []*fleet.LiveHost // of rows
}

// New makes a hub without viewers.
func New(o Options) *Hub {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Hub{o: o, log: log, audiences: map[string]*audience{}, wake: make(chan struct{}, 1),
		expected: make(chan *gozzard.Rights, 1)}
}

// Run sends changes to the viewers until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	var preparing sync.WaitGroup
	preparing.Go(func() { h.prepare(ctx) })
	defer preparing.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
			h.follow(ctx)
		}
	}
}

// follow ticks while there are audiences.
func (h *Hub) follow(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for h.used() {
		h.tick()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// used removes the audiences that had no viewer for some time, and reports whether there are others. Without any, the
// fleet stops recording.
func (h *Hub) used() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, a := range h.audiences {
		if a.viewers == 0 && time.Since(a.idle) > idleTime {
			h.end(key, a)
		}
	}
	if len(h.audiences) > 0 {
		return true
	}

	h.o.Fleet.Follow(false)
	h.setHosts(nil)
	return false
}

// end removes an audience. A viewer that still reads finds that it needs a new snapshot. mu is held.
func (h *Hub) end(key string, a *audience) {
	delete(h.audiences, key)
	a.ring.restart("", 0)
}

// tick brings all audiences up to what the fleet has now.
func (h *Hub) tick() {
	// Take what has changed.
	moved := h.movePlaces()
	h.rowIDs, h.hostIDs = h.o.Fleet.TakeChanges(h.rowIDs[:0], h.hostIDs[:0])
	if len(h.rowIDs)+len(h.hostIDs) == 0 && !moved {
		return
	}
	var hosts []*fleet.LiveHost
	for _, n := range h.hostIDs {
		hosts = append(hosts, h.reloadHost(n))
	}
	if moved {
		hosts = h.allHosts()
	}

	// Apply it, in parts.
	list := h.list()
	for rest := h.rowIDs; ; {
		part := rest[:min(len(rest), passRows)]
		rest = rest[len(part):]
		h.rows = h.rows[:0]
		for ids := part; len(ids) > 0; {
			n := min(len(ids), scanPart)
			h.rows = h.o.Fleet.ReadRows(ids[:n], h.rows)
			ids = ids[n:]
		}

		h.on = h.hostsOf(h.rows, h.on[:0])
		for _, a := range list {
			a.pass(hosts, part, h.rows, h.on, moved)
		}
		if hosts, moved = nil, false; len(rest) == 0 {
			return
		}
	}
}

// movePlaces makes the fleet list the rows whose places may have changed.
func (h *Hub) movePlaces() bool {
	if h.o.Places == nil {
		return false
	}
	namespaces, generation := h.o.Places.PlacesChanged(h.generation.Load())
	if generation == h.generation.Load() {
		return false
	}

	h.generation.Store(generation)
	h.placed.Add(1)
	for _, s := range namespaces {
		h.o.Fleet.TouchSpace(s)
	}
	return true
}

func (h *Hub) placedAt() uint32 { return h.placed.Load() }

// placeOf is the place of a process, zero if it has none.
func (h *Hub) placeOf(host *fleet.LiveHost, key gozzard.Key) topology.Place {
	if h.o.Places == nil {
		return topology.Place{}
	}
	if _, ok := gozzard.BusinessOf(key.Namespace); !ok {
		return topology.Place{}
	}
	return h.o.Places.PlaceOf(host.Ref, key)
}

func (h *Hub) list() []*audience {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*audience, 0, len(h.audiences))
	for _, a := range h.audiences {
		list = append(list, a)
	}
	return list
}

// hostsOf appends the host of each row, nil for a row that does not exist.
func (h *Hub) hostsOf(rows []fleet.LiveRow, out []*fleet.LiveHost) []*fleet.LiveHost {
	var last *fleet.LiveHost
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Seq == 0:
			out = append(out, nil)
			continue
		case last == nil || last.Number != r.Host || last.Version != r.Version:
			last = h.host(r.Host, r.Version)
		}
		out = append(out, last)
	}
	return out
}

// host is a host by its number, at least as new as a version.
func (h *Hub) host(number, version uint32) *fleet.LiveHost {
	h.hostMu.RLock()
	var host *fleet.LiveHost
	if int(number) < len(h.hosts) {
		host = h.hosts[number]
	}
	h.hostMu.RUnlock()

	if host == nil || int32(version-host.Version) > 0 && version != 0 {
		return h.reloadHost(number)
	}
	return host
}

// reloadHost reads a host of the fleet.
func (h *Hub) reloadHost(number uint32) *fleet.LiveHost {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	host := h.o.Fleet.LiveHost(number)
	if n := int(number) + 1; n > len(h.hosts) {
		h.hosts = append(h.hosts, make([]*fleet.LiveHost, n-len(h.hosts))...)
	}
	h.hosts[number] = &host
	return &host
}

// allHosts lists all hosts that are known to the hub.
func (h *Hub) allHosts() (list []*fleet.LiveHost) {
	h.hostMu.RLock()
	defer h.hostMu.RUnlock()
	for _, host := range h.hosts {
		if host != nil {
			list = append(list, host)
		}
	}
	return list
}

func (h *Hub) setHosts(list []fleet.LiveHost) {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	h.hosts = make([]*fleet.LiveHost, len(list))
	for i := range list {
		h.hosts[i] = &list[i]
	}
}
