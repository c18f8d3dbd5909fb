package fleet

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// maxParts limits the memory of an unfinished full report.
const maxParts = 1 << 16

// fullReport is the progress of the newest full report of a host.
type fullReport struct {
	round    uint64
	mark     uint32 // different from the marks of earlier rounds
	parts    uint32
	seen     map[uint32]struct{}
	complete bool
}

// forget makes the next part the first one of a new report, even if it has the same round.
func (f *fullReport) forget() { *f = fullReport{mark: f.mark} }

// begin starts a new report, unless the part belongs to the current one.
func (f *fullReport) begin(round uint64, parts uint32) {
	if f.parts == parts && f.round == round {
		return
	}
	*f = fullReport{round: round, parts: parts, mark: f.mark + 1, seen: make(map[uint32]struct{}, min(parts, 64))}
}

// Apply applies changes of a host: rows with new values, and keys that its agent does not manage any more. A removed
// row that the record has stays and becomes unregistered.
func (x *Index) Apply(agent gozzard.AgentID, rows []gozzard.Status, removed []gozzard.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	if e.gone {
		return
	}
	x.noteReported(e)
	x.applyRows(e, rows)

	for _, k := range removed {
		i, ok := x.locate(e, k)
		if !ok {
			continue
		}
		if r := x.rows.at(e.rows[i]); r.flags&rowSeeded != 0 {
			x.unmanage(r)
			x.feedRow(e.rows[i])
			continue
		}
		x.discard(e, i)
	}
}

// Full applies one part of a full report. Parts have numbers, and may arrive in any order and more than once. The last
// missing part completes the report: then rows of the host that were in no part and did not change meanwhile are
// removed. Of these, rows that the record has stay, and are unregistered: the host does not know them, or not yet.
func (x *Index) Full(agent gozzard.AgentID, round uint64, part, parts uint32, rows []gozzard.Status) (complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	if e.gone {
		return false
	}
	x.noteReported(e)

	if parts == 0 || parts > maxParts || part > parts {
		x.applyRows(e, rows)
		return false
	}

	// Apply the rows.
	f := &e.full
	f.begin(round, parts)
	x.applyRows(e, rows)
	if f.complete {
		return true
	}

	// Complete the report with its last part.
	f.seen[part] = struct{}{}
	if len(f.seen) < int(parts) {
		return false
	}

	f.complete, f.seen = true, nil
	x.sweep(e)
	if !e.swept {
		x.recount(e, func() { e.swept = true })
	}
	return true
}

// Seed adds a row that the record has. The row stays until Remove, even if its host does not report it. It does not
// replace values that the host has reported.
func (x *Index) Seed(agent gozzard.AgentID, s gozzard.Status) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.hostFor(agent)
	e.gone = false
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

// Unseed says that the record does not have a row any more. It stays if its host reports it, and as long as it does.
func (x *Index) Unseed(agent gozzard.AgentID, key gozzard.Key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.byAgent[agent]
	if !ok {
		return
	}
	e := x.hosts[at]
	i, ok := x.locate(e, key)
	if !ok {
		return
	}
	r := x.rows.at(e.rows[i])
	r.set(rowSeeded, false)
	if r.flags&rowSeen == 0 {
		x.discard(e, i)
	}
}

// Remove removes a row, also one that Seed added.
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

// Rebind moves all rows of one agent to another. If the other has a row with the same key, its values stay. The order
// of the rows does not change.
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

	// Move the rows one by one.
	dst := x.hostFor(to)
	dst.gone = false
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
		x.feedRow(id)
		x.countRow(r, -1)
		r.host, r.mark = dst.place, dst.full.mark
		r.set(rowSeen, false) // the new host has not reported it
		x.countRow(r, 1)
		dst.rows = slices.Insert(dst.rows, i, id)
	}

	src.rows = nil
}

// Dropped counts reported rows that were dropped because their key is invalid or their host has more than
// MaxRowsPerHost.
func (x *Index) Dropped() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dropped
}

// OnLeftOut sets a function that is called when reported rows are dropped: how many because their host has too many,
// and how many because their key is invalid. The lock is held during the call, so f must be fast and must not call the
// index. OnLeftOut must be called before the first report.
func (x *Index) OnLeftOut(f func(agent gozzard.AgentID, tooMany, badKeys int)) { x.leftOut = f }

// applyRows stores reported rows. It drops invalid ones, and those beyond the limit of the host.
func (x *Index) applyRows(e *host, rows []gozzard.Status) {
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
		} else if at, ok := x.locate(e, s.Key); ok {
			r = x.rows.at(e.rows[at])
			x.feedRow(e.rows[at])
		} else {
			tooMany++
			continue
		}
		x.setSeen(r, true)
		x.store(r, s)
		r.mark = e.full.mark
	}
}

// sweep removes rows that were not in a complete full report.
func (x *Index) sweep(e *host) {
	kept := e.rows[:0]
	for _, id := range e.rows {
		r := x.rows.at(id)
		switch {
		case r.mark == e.full.mark:
		case r.flags&rowSeeded == 0:
			x.erase(id)
			continue
		case r.state != gozzard.StateUnregistered: // reported before, or from the record
			x.unmanage(r)
			x.feedRow(id)
		}
		kept = append(kept, id)
	}

	e.rows = kept
}

// unmanage makes a row unregistered: the record has the process, but its host does not manage it.
func (x *Index) unmanage(r *row) {
	x.noteHost(r.host)
	x.countRow(r, -1)
	r.state, r.condition = gozzard.StateUnregistered, gozzard.ConditionNone
	r.set(rowSeen, false)
	x.countRow(r, 1)
	r.setBits(rowHealthShift, uint8(gozzard.HealthNone))
	r.memKB = 0
	x.dropHistory(r)
	r.pid, r.fd, r.cpu, r.mem, r.disk, r.net, r.started = -1, 0, 0, 0, 0, 0, 0
}

// setSeen notes whether the host of a row has reported it. mu is held.
func (x *Index) setSeen(r *row, seen bool) {
	if seen != (r.flags&rowSeen != 0) {
		x.countRow(r, -1)
		r.set(rowSeen, seen)
		x.countRow(r, 1)
	}
}
