package control

import (
	"slices"
	"sort"
	"sync"

	"github.com/gozzard/gozzard/internal/record"
)

// EventRing has the newest events of the record, for readers that follow them: a thousand readers must not ask the
// record. A reader has a place in it and no buffer, so a slow reader costs nothing.
type EventRing struct {
	mu      sync.Mutex
	ring    []record.Event
	start   int           // of the oldest in ring
	size    int           // how many are in ring
	floor   uint64        // all events with higher numbers that the record has are here
	last    uint64        // the newest that is here, or was
	removed uint64        // the highest number of an event that was removed from the record
	changed chan struct{} // closed when something is added; nil when no reader waits
}

// EventPlace says where the events behind a number are.
type EventPlace int

// Places of events.
const (
	EventsHere  EventPlace = iota // in the ring
	EventsOlder                   // not all in the ring: the record has them
	EventsAhead                   // the ring has not come so far
)

// NewEventRing makes an empty one for at most the given number of events.
func NewEventRing(most int) *EventRing { return &EventRing{ring: make([]record.Event, most)} }

// Load replaces what is in the ring by the newest events of the record, the oldest first. all: the record has no others.
func (r *EventRing) Load(st record.EventState, events []record.Event, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.ring)
	r.start, r.size, r.floor, r.last, r.removed = 0, 0, 0, st.Last, st.Removed
	if !all && len(events) > 0 {
		r.floor = events[0].ID - 1
	}
	for i := range events {
		r.put(&events[i])
	}
	r.wakeReaders()
}

// Append adds events of the record. before is the number of the newest event that the record had before them. It adds
// nothing and reports false if the ring does not have that one: others come first.
func (r *EventRing) Append(before uint64, events []record.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before != r.last {
		return false
	}
	for i := range events {
		r.put(&events[i])
	}
	r.wakeReaders()
	return true
}

// Skip notes that the record has no events up to a number that are not here.
func (r *EventRing) Skip(to uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, to)
}

// Last is the number of the newest event.
func (r *EventRing) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Removed notes the highest number of an event that was removed from the record. It reports whether some of those may be
// in the ring.
func (r *EventRing) Removed(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id <= r.removed {
		return false
	}
	r.removed = id
	return r.size > 0 && r.at(0).ID <= id
}

// put adds one event. mu is held.
func (r *EventRing) put(e *record.Event) {
	r.last = e.ID
	if r.size < len(r.ring) {
		*r.at(r.size) = *e
		r.size++
		return
	}
	r.floor = r.at(0).ID
	*r.at(0) = *e
	r.start = (r.start + 1) % len(r.ring)
}

// at is an event, counted from the oldest. mu is held.
func (r *EventRing) at(i int) *record.Event { return &r.ring[(r.start+i)%len(r.ring)] }

// wakeReaders lets the readers go on that wait for events. mu is held.
func (r *EventRing) wakeReaders() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Newest gives the last events that fit and may be seen, oldest first. Events up to floor are not here; 0: all are.
func (r *EventRing) Newest(f record.EventFilter, sees func(*record.Event) bool, limit int) (p record.EventPage,
	floor uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Next = r.last
	for i := r.size - 1; i >= 0 && len(p.Events) < limit; i-- {
		if e := r.at(i); f.Fits(e) && sees(e) {
			p.Events = append(p.Events, *e)
		}
	}
	slices.Reverse(p.Events)
	return p, r.floor
}

// After gives the first events that fit and may be seen behind a number, and a channel that is closed when there may be
// more. If the events are not here, the page has none, and its Next is the number up to which the record has to be read.
func (r *EventRing) After(f record.EventFilter, sees func(*record.Event) bool, id uint64,
	limit int) (record.EventPage, <-chan struct{}, EventPlace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	p := record.EventPage{Next: r.last, Lost: id != 0 && id < r.removed}
	switch {
	case id > r.last:
		return p, r.changed, EventsAhead
	case id < r.floor:
		return p, r.changed, EventsOlder
	}

	for i := sort.Search(r.size, func(i int) bool { return r.at(i).ID > id }); i < r.size; i++ {
		e := r.at(i)
		if !f.Fits(e) || !sees(e) {
			continue
		}
		p.Events = append(p.Events, *e)
		if len(p.Events) == limit {
			p.Next = e.ID
			break
		}
	}
	return p, r.changed, EventsHere
}
