package index

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gozzard/gozzard/internal/topology"
)

// Index is every business in memory, with the indexes that questions need. All methods are safe for concurrent use.
//
// Each business is a set of columns that never change but for the statuses: Put builds new ones aside and swaps
// them in, so readers go on with the old ones meanwhile. A question decides everything but statuses without any
// lock, and holds the business's lock shared only to look at statuses and to copy its page. Refresh asks the fleet
// without that lock and takes it only to write what has changed.
type Index struct {
	puts    sync.Mutex // one Put, Replace or Remove at a time
	all     atomic.Pointer[generation]
	scratch sync.Pool // of *scratch
}

// generation is every business at one moment. It is not changed: the next one takes its place.
type generation struct {
	now  map[int]*columns
	next map[int]*columns // being looked at before they are shown; refreshes go to these as well
}

// New makes an empty index.
func New() *Index {
	x := &Index{}
	x.all.Store(&generation{})
	x.scratch.New = func() any { return new(scratch) }
	return x
}

// Put inserts or replaces a business. Nothing of b and n is kept. Statuses of instances that stay (the same host,
// alias and local number) are kept until they are refreshed; new instances are unregistered until then.
func (x *Index) Put(b *topology.Business, n []topology.Numbers) {
	fresh := build(b, n)
	x.puts.Lock()
	defer x.puts.Unlock()
	old := x.business(b.ID)
	if old == nil {
		x.show(b.ID, fresh)
		return
	}

	kept := fresh.matchInstances(old)
	old.mu.RLock() // keeps refreshes out: none may get lost between the copy and the swap
	defer old.mu.RUnlock()
	fresh.keep(old, kept)
	x.show(b.ID, fresh)
	old.gone.Store(true)
}

// Replace is Put for who can look: questions see the business as it was until all instances of the new one have
// been looked at.
func (x *Index) Replace(b *topology.Business, n []topology.Numbers, look Look) {
	fresh := build(b, n)
	x.puts.Lock()
	defer x.puts.Unlock()
	old := x.business(b.ID)
	g := *x.all.Load()
	g.next = with(g.next, b.ID, fresh) // a refresh that does not see it yet is of a moment before the look
	x.all.Store(&g)
	fresh.refresh(places(len(fresh.hosts)), look)
	x.show(b.ID, fresh)
	if old != nil {
		old.gone.Store(true)
	}
}

// Remove forgets a business.
func (x *Index) Remove(biz int) {
	x.puts.Lock()
	defer x.puts.Unlock()
	if old := x.business(biz); old != nil {
		x.show(biz, nil)
		old.gone.Store(true)
	}
}

// Len is the number of processes of a business.
func (x *Index) Len(biz int) int {
	if c := x.business(biz); c != nil {
		return len(c.ids)
	}
	return 0
}

// business finds the columns of a business as they are now, nil when there are none.
func (x *Index) business(biz int) *columns { return x.all.Load().now[biz] }

// show puts columns in the place of a business's old ones; nil removes it. Readers hold on to the generation that
// they have.
func (x *Index) show(biz int, c *columns) {
	g := *x.all.Load()
	g.now, g.next = with(g.now, biz, c), with(g.next, biz, nil)
	x.all.Store(&g)
}

// with is a map with other columns for a business; nil removes it.
func with(m map[int]*columns, biz int, c *columns) map[int]*columns {
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
