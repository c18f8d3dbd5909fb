package fleet

import "github.com/gozzard/gozzard"

// condition is the state of a row as people see it. It is not known while its host is offline, and until the host has
// reported in its present session. A row that only the record has is not known before the first complete report: only
// then it is certain that the agent does not have it.
func (x *Index) condition(r *row) gozzard.Condition {
	e := x.hosts[r.host]
	if !e.fresh() || r.flags&rowSeen == 0 && !e.swept {
		return gozzard.ConditionUnknown
	}
	return r.shown()
}

// shown is the state that the agent reported last.
func (r *row) shown() gozzard.Condition {
	s := gozzard.Status{State: r.state, Condition: r.condition}
	return s.ConditionOf()
}

// fresh reports whether the host is online and has reported in its present session.
func (h *host) fresh() bool { return h.Online && h.current }

// countRow changes the number of rows in the condition of a row. mu is held.
func (x *Index) countRow(r *row, by int) {
	c := x.condition(r)
	x.conditions[c] += by

	at := spaceCount{r.space, r.wanted == gozzard.StateRunning, c, gozzard.Health(r.bits(rowHealthShift))}
	if n := x.spaceCounts[at] + by; n != 0 {
		x.spaceCounts[at] = n
	} else {
		delete(x.spaceCounts, at)
	}
}

// recount changes something that the conditions of all rows of a host depend on. mu is held.
func (x *Index) recount(e *host, change func()) {
	for _, id := range e.rows {
		x.countRow(x.rows.at(id), -1)
	}
	change()
	for _, id := range e.rows {
		x.countRow(x.rows.at(id), 1)
		x.feedRow(id)
	}
	x.noteHost(e.place)
}

// noteReported notes that a host has reported. mu is held.
func (x *Index) noteReported(e *host) {
	e.reported = true
	if !e.current {
		x.recount(e, func() { e.current = true })
	}
}

// CountByCondition counts processes by their state as people see it. States without processes are not in the map.
func (x *Index) CountByCondition() map[gozzard.Condition]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := make(map[gozzard.Condition]int)
	for c, n := range x.conditions {
		if n > 0 {
			counts[gozzard.Condition(c)] = n
		}
	}
	return counts
}
