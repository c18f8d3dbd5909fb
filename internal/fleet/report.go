package fleet

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// maxParts bounds the memory of an unfinished full report.
const maxParts = 1 << 16

// fullReport is how far the newest full report of a host has come.
type fullReport struct {
	round    uint64
	mark     uint32 // told apart from the marks of earlier rounds
	parts    uint32
	seen     map[uint32]struct{}
	complete bool
}

// forget makes the next part the first of a new report, whatever its round.
func (f *fullReport) forget() { *f = fullReport{mark: f.mark} }

// begin starts over unless the part belongs to the report at hand.
func (f *fullReport) begin(round uint64, parts uint32) {
	if f.parts == parts && f.round == round {
		return
	}
	*f = fullReport{round: round, parts: parts, mark: f.mark + 1, seen: make(map[uint32]struct{}, min(parts, 64))}
}

// Apply takes in what changed on a host: rows with new values, and keys that its agent manages no more. Of those
// the record still has a row stays and says so.
func (x *Index) Apply(agent gozzard.AgentID, rows []gozzard.Status, removed []gozzard.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	e.reported = true
	x.report(e, rows)

	for _, k := range removed {
		i, ok := x.locate(e, k)
		if !ok {
			continue
		}
		if r := x.rows.at(e.rows[i]); r.flags&rowSeeded != 0 {
			x.unmanage(r)
			continue
		}
		x.discard(e, i)
	}
}

// Full takes in one part of a full report. The parts of a round are told apart by their numbers and may come in any
// order and more than once. With the last one the report is complete: rows of that host that were in no part and
// did not change meanwhile go. Those that the record has stay, and say that the host does not manage them if it
// once did.
func (x *Index) Full(agent gozzard.AgentID, round uint64, part, parts uint32, rows []gozzard.Status) (complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	e.reported = true

	if parts == 0 || parts > maxParts || part > parts {
		x.report(e, rows)
		return false
	}

	f := &e.full
	f.begin(round, parts)
	x.report(e, rows)

	if f.complete {
		return true
	}

	f.seen[part] = struct{}{}
	if len(f.seen) < int(parts) {
		return false
	}

	f.complete, f.seen = true, nil
	x.sweep(e)
	return true
}

// Seed puts a row that the record has. It stays though its host does not report it, until Remove; values that the
// host has reported stay too.
func (x *Index) Seed(agent gozzard.AgentID, s gozzard.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	r := x.obtain(e, s.Key)
	if r == nil {
		x.dropped++
		return
	}

	r.set(rowSeeded, true)
	r.mark = e.full.mark
	if r.flags&rowSeen == 0 {
		x.store(r, &s)
	}
}

// Remove takes a row away, also one that was seeded.
func (x *Index) Remove(agent gozzard.AgentID, key gozzard.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.byAgent[agent]
	if !ok {
		return
	}
	if i, ok := x.locate(x.hosts[at], key); ok {
		x.discard(x.hosts[at], i)
	}
}

// Rebind gives all rows of one agent to another. Where the other has a row of that key its own values stay. Nothing
// changes its place in a page.
func (x *Index) Rebind(from, to gozzard.AgentID) {
	if from == to {
		return
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.byAgent[from]
	if !ok {
		return
	}

	src := x.hosts[at]
	if len(src.rows) == 0 {
		return
	}

	dst := x.hostFor(to)
	for _, id := range src.rows {
		r := x.rows.at(id)
		i, taken := x.locate(dst, x.keyOf(r))
		if taken {
			own := x.rows.at(dst.rows[i])
			own.set(rowSeeded, (own.flags|r.flags)&rowSeeded != 0)
			x.erase(id)
			continue
		}
		x.noteHost(src.place)
		x.noteHost(dst.place)
		r.host, r.mark = dst.place, dst.full.mark
		r.set(rowSeen, false) // not by its new host
		dst.rows = slices.Insert(dst.rows, i, id)
	}

	src.rows = nil
}

// Dropped counts reported rows that were left out: their key cannot be one, or their host has more than MaxRowsPerHost.
func (x *Index) Dropped() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dropped
}

// OnLeftOut has f told of reported rows that are left out: how many because their host has too many, and how many
// because their key cannot be one. It is called under the lock, so f must be quick and ask the index nothing. To be
// called once, before anything is reported.
func (x *Index) OnLeftOut(f func(agent gozzard.AgentID, tooMany, badKeys int)) { x.leftOut = f }

func (x *Index) report(e *host, rows []gozzard.Status) {
	tooMany, badKeys := 0, 0
	defer func() {
		x.dropped += uint64(tooMany + badKeys)
		if tooMany+badKeys > 0 && x.leftOut != nil {
			x.leftOut(e.Info.Agent, tooMany, badKeys)
		}
	}()

	for i := range rows {
		s := &rows[i]
		var r *row
		if len(e.rows) < MaxRowsPerHost {
			if r = x.obtain(e, s.Key); r == nil {
				badKeys++
				continue
			}
		} else if r = x.find(e, s.Key); r == nil {
			tooMany++
			continue
		}
		x.store(r, s)
		r.set(rowSeen, true)
		r.mark = e.full.mark
	}
}

// sweep removes what a complete full report has shown to be gone.
func (x *Index) sweep(e *host) {
	kept := e.rows[:0]
	for _, id := range e.rows {
		r := x.rows.at(id)
		switch {
		case r.mark == e.full.mark:
		case r.flags&rowSeeded == 0:
			x.erase(id)
			continue
		case r.flags&rowSeen != 0:
			x.unmanage(r)
		}
		kept = append(kept, id)
	}

	e.rows = kept
}

// unmanage leaves of a row what the record knows: the host manages no such process.
func (x *Index) unmanage(r *row) {
	x.noteHost(r.host)
	x.states[r.state]--
	r.state = gozzard.StateUnregistered
	x.states[r.state]++
	r.pid, r.fd, r.cpu, r.mem, r.disk, r.net, r.started = -1, 0, 0, 0, 0, 0, 0
	r.set(rowSeen, false)
}
