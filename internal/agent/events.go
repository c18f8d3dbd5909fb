package agent

import (
	"errors"
	"iter"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fairlist"
	"github.com/gozzard/gozzard/internal/journal"
)

// Limits of events. Events that the server has are kept for a while, to be read on the host. Events that the server
// does not have are dropped only if there are very many.
const (
	keptEvents       = 1000
	maxUnackedEvents = 10_000
	eventsPerReport  = 400
	maxEventMessage  = 1 << 10
	batchEvents      = 30 * time.Millisecond // events that happen together are sent together
)

// eventLog has the events. Namespaces share its room: a namespace with very many events does not push out the others.
type eventLog struct {
	old    *fairlist.List[gozzard.Event] // the server has them
	recent *fairlist.List[gozzard.Event] // the server does not have them
	acked  uint64                        // the server has the events up to this number
	lost   int                           // events that were dropped before the server had them
}

func newEventLog() eventLog {
	return eventLog{old: fairlist.New[gozzard.Event](keptEvents), recent: fairlist.New[gozzard.Event](maxUnackedEvents)}
}

// last is the highest number in use.
func (l *eventLog) last() uint64 { return max(l.acked, l.recent.Last()) }

// add appends an event. An event with a number that is not above the last one is ignored.
func (l *eventLog) add(e gozzard.Event) {
	if e.Seq <= max(l.old.Last(), l.recent.Last()) {
		return
	}
	if e.Seq <= l.acked {
		l.old.Add(e.Key.Namespace, e.Seq, e)
		return
	}
	if _, dropped := l.recent.Add(e.Key.Namespace, e.Seq, e); dropped {
		l.lost++
	}
}

// ack records that the server has all events up to a number.
func (l *eventLog) ack(seq uint64) {
	l.acked = max(l.acked, seq)
	for e, ok := l.recent.TakeOldest(l.acked); ok; e, ok = l.recent.TakeOldest(l.acked) {
		l.old.Add(e.Key.Namespace, e.Seq, e)
	}
}

// kept yields all events, oldest first.
func (l *eventLog) kept() iter.Seq[*gozzard.Event] {
	return func(yield func(*gozzard.Event) bool) {
		for _, part := range []*fairlist.List[gozzard.Event]{l.old, l.recent} {
			for e := range part.All() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// addEvent accepts an event from the supervisor. It does not block: the loop writes the event to the journal. The
// number follows the clock, so numbers are not used twice even if the agent ended before it could write the events.
func (a *Agent) addEvent(e gozzard.Event) {
	now := a.o.Now()
	if e.At == 0 {
		e.At = now.UnixMilli()
	}
	e.Message = clip(e.Message[:min(len(e.Message), maxEventMessage)])

	a.eventMu.Lock()
	if len(a.newEvents) < maxUnackedEvents {
		a.lastSeq = max(a.lastSeq+1, uint64(max(0, now.UnixMicro())))
		e.Seq = a.lastSeq
		a.newEvents = append(a.newEvents, e)
	} else {
		a.droppedEvents++
	}
	a.eventMu.Unlock()
	a.wake()
}

// saveEvents writes new events to the journal. It does not sync: sendEvents does. If there is no room on the disk, or
// the state folder cannot be written, the events stay in memory and are sent from there.
func (a *Agent) saveEvents() {
	// Claim the new events.
	a.eventMu.Lock()
	events, dropped := a.newEvents, a.droppedEvents
	a.newEvents, a.droppedEvents = nil, 0
	a.eventMu.Unlock()
	if dropped > 0 {
		a.log.Warn("dropped events: too many at once", "events", dropped)
	}
	if len(events) == 0 {
		return
	}

	// Write them to the journal.
	entries := make([]journal.Entry, len(events))
	for i := range events {
		e := entry{Event: &events[i]}
		entries[i] = e.encode(recordEvent)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.journal.Write(false, entries...); err != nil {
		a.log.Debug("cannot write events to the journal, they are only in memory", "events", len(events), "err", err)
		if !errors.Is(err, journal.ErrNoSpace) && !errors.Is(err, journal.ErrUnable) { // the journal is broken or closed: the agent is ending
			return
		}
	}

	// Add them to the state.
	for _, e := range events {
		a.state.events.add(e)
	}
	if n := a.state.events.lost; n > 0 {
		a.state.events.lost = 0
		a.log.Warn("dropped events that the server does not have: too many", "events", n)
	}
}

// reportEvents sends what the server does not have, one batch at a time, oldest first: an acknowledged number stands
// for all events up to it.
func (a *Agent) reportEvents(link Link, now time.Time, wait *earliest) {
	p := &a.plan
	a.mu.Lock()
	pending := a.state.events.recent.Len() > 0
	a.mu.Unlock()
	if !pending {
		p.events, p.eventTries = time.Time{}, 0
		return
	}

	if p.events.IsZero() {
		p.events = now.Add(batchEvents)
	}
	if !p.events.After(now) {
		a.sendEvents(link)
		p.events = now.Add(a.jitter(min(eventsFirst<<min(p.eventTries, 8), eventsLast)))
		p.eventTries++
	}

	wait.include(p.events)
}

// sendEvents sends one batch. The batch is durable before, so a number that the server has seen is never used again.
func (a *Agent) sendEvents(link Link) {
	// Fill the batch.
	a.mu.Lock()
	var batch []gozzard.Event
	size := 0
	for e := range a.state.events.recent.All() {
		if len(batch) == eventsPerReport || size >= maxReportBytes {
			break
		}
		size += 256 + len(e.Message)
		batch = append(batch, *e)
	}
	lsn := a.journal.Written()
	a.mu.Unlock()

	// Make it durable. The journal reports an error through fatal.
	if a.sync(lsn) != nil {
		return
	}

	// Send it.
	r := a.newReport(gozzard.ReportEvents)
	r.Events = batch
	if err := link.Send(r); err != nil {
		a.log.Debug("cannot send events", "err", err)
	}
}

// handleEventAck handles the acknowledgement of events. It need not be durable: if the events are sent again, they are
// acknowledged again.
func (a *Agent) handleEventAck(cmd *gozzard.Command) {
	if cmd.AckEvents == 0 || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}

	// Record it.
	a.mu.Lock()
	defer a.mu.Unlock()
	log := &a.state.events
	if cmd.AckEvents <= log.acked || cmd.AckEvents > log.last() {
		return
	}
	if _, err := a.write(false, recordEventsAcked, &entry{Seq: cmd.AckEvents}); err != nil {
		log.ack(cmd.AckEvents)
	}

	// Send the next batch at once.
	a.plan.eventTries = 0
	a.plan.events = time.Time{}
	if log.recent.Len() > 0 {
		a.plan.events = a.o.Now()
	}
}
