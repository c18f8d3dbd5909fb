package fleet

import (
	"slices"
	"sync/atomic"

	"github.com/gozzard/gozzard"
)

// feed is the rows and hosts that changed since the last call of TakeChanges. A row is recorded once, by its number: the
// reader looks at the row as it is then. Nothing is recorded while nobody follows.
type feed struct {
	any    atomic.Bool // something is recorded; read without the lock
	on     bool
	marked []uint64 // a bit for each row
	rows   []uint32
	hosts  []uint32 // host.fed is true
}

// LiveRow is a row in the form in which viewers follow it. Its strings are shared.
type LiveRow struct {
	ID        uint32 // stable while the row exists; another row may have it later
	Host      uint32
	Version   uint32 // of the host
	Seq       uint64 // never used again; 0: there is no row with this number now
	Key       gozzard.Key
	PID       int32 // -1: none
	Started   int64 // Unix seconds; 0: none
	Mem       uint32
	CPU       float32 // percent of one core
	Restarts  uint16
	Condition gozzard.Condition

	Managed, Stale, Periodic, Unhealthy, Wanted bool
}

// LiveHost is a host in the form in which viewers follow it. Its addresses are shared and must not be changed.
type LiveHost struct {
	Number  uint32
	Version uint32 // a newer one is higher
	Ref     gozzard.HostRef
	Known   bool // otherwise only its rows were reported, or it was forgotten
	Online  bool
}

// Follow starts or ends the recording of changes for TakeChanges. It forgets what was recorded before.
func (x *Index) Follow(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, at := range x.feed.hosts {
		x.hosts[at].fed = false
	}
	x.feed.on, x.feed.marked, x.feed.rows, x.feed.hosts = on, nil, nil, nil
	x.feed.any.Store(false)
}

// TakeChanges appends the numbers of the rows and hosts that were added, removed or written since the last call. Only
// one goroutine may call it.
func (x *Index) TakeChanges(rows, hosts []uint32) (changedRows, changedHosts []uint32) {
	if !x.feed.any.Load() {
		return rows, hosts
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	f := &x.feed
	rows, hosts = append(rows, f.rows...), append(hosts, f.hosts...)
	for _, id := range f.rows {
		f.marked[id/64] = 0 // the other bits of the word are of rows in the list, too
	}
	for _, at := range f.hosts {
		x.hosts[at].fed = false
	}

	f.rows, f.hosts = f.rows[:0], f.hosts[:0]
	f.any.Store(false)
	return rows, hosts
}

// TouchSpace records all rows of a namespace as changed.
func (x *Index) TouchSpace(namespace string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o := x.orderOf(namespace); o != nil && namespace != "" {
		o.slice(0, o.n, x.feedRow)
	}
}

// ReadRows appends rows by their numbers. A row that does not exist is appended without a sequence number. The lock is
// held for the whole list, so a long list must be read in parts.
func (x *Index) ReadRows(ids []uint32, out []LiveRow) []LiveRow {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out = slices.Grow(out, len(ids))
	for _, id := range ids {
		out = append(out, x.live(id))
	}
	return out
}

// ScanRows appends the rows with numbers from first on, at most limit numbers. It returns the first number of the next
// part, and false when there is none.
func (x *Index) ScanRows(first uint32, limit int, out []LiveRow) (rows []LiveRow, next uint32, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := uint32(min(uint64(first)+uint64(limit), uint64(x.rows.used)))
	for id := first; id < end; id++ {
		if r := x.live(id); r.Seq != 0 {
			out = append(out, r)
		}
	}
	return out, end, end < x.rows.used
}

// LiveRows returns rows in the form for callers, by their numbers. f decides about each row by its sequence number and
// what viewers follow of it. f must be fast and must not call the index.
func (x *Index) LiveRows(ids []uint32, f func(i int, r *LiveRow) bool) (rows []Row, at []int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i, id := range ids {
		if r := x.live(id); r.Seq != 0 && f(i, &r) {
			rows, at = append(rows, x.load(x.rows.at(id))), append(at, i)
		}
	}
	return rows, at
}

// LiveHost returns a host by its number. There must be one.
func (x *Index) LiveHost(number uint32) LiveHost {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.hosts[number].live()
}

// LiveHosts returns all hosts in the order of their numbers.
func (x *Index) LiveHosts() []LiveHost {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list := make([]LiveHost, len(x.hosts))
	for i, e := range x.hosts {
		list[i] = e.live()
	}
	return list
}

func (h *host) live() LiveHost {
	return LiveHost{Number: h.place, Version: h.version, Ref: h.Info.Ref(), Known: h.known, Online: h.Online}
}

// live reads a row as viewers follow it. mu is held.
func (x *Index) live(id uint32) LiveRow {
	if id >= x.rows.used {
		return LiveRow{ID: id}
	}
	r := x.rows.at(id)
	if r.seq == 0 {
		return LiveRow{ID: id}
	}

	e := x.hosts[r.host]
	out := LiveRow{ID: id, Host: r.host, Version: e.version, Seq: r.seq, Key: x.keyOf(r), PID: r.pid, Started: r.started,
		Mem: r.memKB, CPU: gozzard.Finite(r.cpu) * float32(max(e.Info.CPUs, 1)), Condition: x.condition(r),
		Managed: r.flags&rowHosted != 0, Stale: !e.Online || !e.reported,
		Periodic:  gozzard.ShownKind(r.bits(rowKindShift)) == gozzard.ShownPeriodic,
		Unhealthy: gozzard.Health(r.bits(rowHealthShift)) == gozzard.HealthFailing,
		Wanted:    r.wanted == gozzard.StateRunning}
	if r.history != 0 {
		out.Restarts = x.histories.at(r.history).restarts
	}
	return out
}

// feedRow records that a row changes. mu is held.
func (x *Index) feedRow(id uint32) {
	f := &x.feed
	if !f.on {
		return
	}
	if word := int(id / 64); word >= len(f.marked) {
		f.marked = append(f.marked, make([]uint64, max(word+1, 2*len(f.marked))-len(f.marked))...)
	}
	if bit := uint64(1) << (id % 64); f.marked[id/64]&bit == 0 {
		f.marked[id/64] |= bit
		f.rows = append(f.rows, id)
		f.any.Store(true)
	}
}

// feedHost records that a host itself changes, and with it what its rows look like and which viewers see them. mu is
// held.
func (x *Index) feedHost(e *host) {
	e.version++
	if !x.feed.on {
		return
	}
	if !e.fed {
		e.fed = true
		x.feed.hosts = append(x.feed.hosts, e.place)
		x.feed.any.Store(true)
	}
	for _, id := range e.rows {
		x.feedRow(id)
	}
}
