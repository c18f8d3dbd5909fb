package index

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gozzard/gozzard/internal/topology"
)

// Index holds all businesses in memory, with the indexes that queries need. All methods are safe for concurrent use.
//
// Each business is a set of columns that never change, except for the statuses. Put builds new columns and swaps them
// in; readers continue with the old ones meanwhile. A query tests everything but statuses without any lock. It holds
// the read lock of the business only to look at statuses and to copy its page. Refresh asks the fleet without that
// lock, and takes it only to write what has changed.
type Index struct {
	writeMu sync.Mutex // held by Put, Replace and Remove
	all     atomic.Pointer[generation]
	scratch sync.Pool // of *scratch
}

// generation is all businesses at one moment. It never changes; a new one replaces it.
type generation struct {
	current map[int]*columns
	loading map[int]*columns // of Replace, until their statuses are known; refreshes update these as well
}

// New returns an empty index.
func New() *Index {
	x := &Index{}
	x.all.Store(&generation{})
	x.scratch.New = func() any { return new(scratch) }
	return x
}

// Put adds or replaces a business. The index keeps no reference to b and n. An instance with the same host, alias and
// local number as before keeps its status until the next refresh. New instances are unregistered until then.
func (x *Index) Put(b *topology.Business, n []topology.Numbers) {
	fresh := build(b, n)

	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	old := x.business(b.ID)
	if old == nil {
		x.publish(b.ID, fresh)
		return
	}

	// The read lock blocks refreshes, so that none gets lost between the copy and the swap.
	same := fresh.matchRows(old)
	old.mu.RLock()
	defer old.mu.RUnlock()
	fresh.copyStatuses(old, same)
	x.publish(b.ID, fresh)
	old.replaced.Store(true)
}

// Replace is Put with up-to-date statuses: queries see the old business until look has returned the statuses of all
// instances of the new one.
func (x *Index) Replace(b *topology.Business, n []topology.Numbers, look Look) {
	fresh := build(b, n)

	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	old := x.business(b.ID)

	// Let refreshes see the new columns. One that started before does not see them, but what it writes is older than
	// what look returns below.
	g := *x.all.Load()
	g.loading = withBusiness(g.loading, b.ID, fresh)
	x.all.Store(&g)

	// Get the statuses, then let queries see the new columns.
	fresh.refresh(positions(len(fresh.hosts)), look)
	x.publish(b.ID, fresh)
	if old != nil {
		old.replaced.Store(true)
	}
}

// Remove removes a business from the index.
func (x *Index) Remove(biz int) {
	x.writeMu.Lock()
	defer x.writeMu.Unlock()
	if old := x.business(biz); old != nil {
		x.publish(biz, nil)
		old.replaced.Store(true)
	}
}

// Len is the number of processes of a business.
func (x *Index) Len(biz int) int {
	if c := x.business(biz); c != nil {
		return len(c.ids)
	}
	return 0
}

// business returns the current columns of a business, or nil.
func (x *Index) business(biz int) *columns { return x.all.Load().current[biz] }

// publish replaces the columns of a business; nil removes it. Queries under way continue with the generation that they
// have.
func (x *Index) publish(biz int, c *columns) {
	g := *x.all.Load()
	g.current, g.loading = withBusiness(g.current, biz, c), withBusiness(g.loading, biz, nil)
	x.all.Store(&g)
}

// withBusiness returns a copy of a map with other columns for a business; nil removes it.
func withBusiness(m map[int]*columns, biz int, c *columns) map[int]*columns {
	m = maps.Clone(m)
	if c == nil {
		delete(m, biz)
		return m
	}
	if m == nil {
		m = make(map[int]*columns)
	}
	m[biz] = c
	return m
}
