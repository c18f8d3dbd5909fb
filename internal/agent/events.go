package agent

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
)

// Bounds of events. Those that the server has are kept for a look into the past; those it does not have are given
// up only when there are very many.
const (
	keptEvents      = 1000
	maxUntold       = 10_000
	eventsPerReport = 400
	maxEventMessage = 1 << 10
	batchEvents     = 30 * time.Millisecond // one event is seldom alone
)

// eventLog is what happened, oldest first.
type eventLog struct {
	kept  []gozzard.Event
	acked uint64 // have arrived at the server up to this number
	lost  int    // were given up before the server had them
}

// last is the highest number given.
func (l *eventLog) last() uint64 {
	if n := len(l.kept); n > 0 {
		return max(l.acked, l.kept[n-1].Seq)
	}
	return l.acked
}

// add takes an event in; numbers never go back.
func (l *eventLog) add(e gozzard.Event) {
	if n := len(l.kept); n > 0 && e.Seq <= l.kept[n-1].Seq {
		return
	}
	l.kept = append(l.kept, e)
	l.trim()
}

func (l *eventLog) ack(seq uint64) {
	l.acked = max(l.acked, seq)
	l.trim()
}

func (l *eventLog) trim() {
	n := max(0, len(l.kept)-maxUntold)
	for i := range l.kept[:n] {
		if l.kept[i].Seq > l.acked {
			l.lost++
		}
	}
	for len(l.kept)-n > keptEvents && l.kept[n].Seq <= l.acked {
		n++
	}
	l.kept = l.kept[n:]
}

// untold lists what the server does not have.
func (l *eventLog) untold() []gozzard.Event {
	i, _ := slices.BinarySearchFunc(l.kept, l.acked+1,
		func(e gozzard.Event, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	return l.kept[i:]
}

// note takes an event of the supervisor in. It does not block: the loop writes it down. The number follows the
// clock, so that it does not go back either when events could not be written before the agent ended.
func (a *Agent) note(e gozzard.Event) {
	now := a.o.Now()

	if e.At == 0 {
		e.At = now.UnixMilli()
	}

	e.Message = clip(e.Message[:min(len(e.Message), maxEventMessage)])
	a.eventMu.Lock()

	if len(a.news) < maxUntold {
		a.lastSeq = max(a.lastSeq+1, uint64(max(0, now.UnixMicro())))
		e.Seq = a.lastSeq
		a.news = append(a.news, e)
	} else {
		a.missed++
	}

	a.eventMu.Unlock()
	a.wake()
}

// saveEvents writes new events down. It is not waited for: what is told is synced first. Without room they are told
// from memory.
func (a *Agent) saveEvents() {
	a.eventMu.Lock()
	news, missed := a.news, a.missed
	a.news, a.missed = nil, 0
	a.eventMu.Unlock()

	if missed > 0 {
		a.log.Warn("events were dropped: too many at once", "events", missed)
	}
	if len(news) == 0 {
		return
	}

	entries := make([]journal.Entry, len(news))
	for i := range news {
		e := entry{Event: &news[i]}
		entries[i] = e.encode(recordEvent)
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if _, err := a.journal.Write(false, entries...); err != nil {
		a.log.Debug("events are kept in memory only", "events", len(news), "error", err)
		if !errors.Is(err, journal.ErrNoSpace) { // the journal is broken or closed: the agent is ending
			return
		}
	}

	for _, e := range news {
		a.state.events.add(e)
	}

	if n := a.state.events.lost; n > 0 {
		a.state.events.lost = 0
		a.log.Warn("events were given up before the server had them", "events", n)
	}
}

// reportEvents tells what the server does not have, one batch at a time and from the oldest on: an acknowledged
// number stands for all before it.
func (a *Agent) reportEvents(link Link, now time.Time, wait *waiting) {
	p := &a.plan
	a.mu.Lock()
	waits := len(a.state.events.untold()) > 0
	a.mu.Unlock()

	if !waits {
		p.events, p.eventTries = time.Time{}, 0
		return
	}

	if p.events.IsZero() {
		p.events = now.Add(batchEvents)
	}
	if !p.events.After(now) {
		a.sendEvents(link)
		p.events = now.Add(a.jitter(min(resendFirst<<min(p.eventTries, 8), resendLast)))
		p.eventTries++
	}

	wait.until(p.events)
}

// sendEvents tells one batch. It is durable before: a number that was told is never given again.
func (a *Agent) sendEvents(link Link) {
	a.mu.Lock()
	untold := a.state.events.untold()
	n, size := 0, 0
	for n < len(untold) && n < eventsPerReport && size < maxReportBytes {
		size += 256 + len(untold[n].Message)
		n++
	}

	batch := slices.Clone(untold[:n])
	lsn := a.journal.Written()
	a.mu.Unlock()

	if a.journal.Sync(lsn) != nil { // told by fatal
		return
	}

	r := a.frame(gozzard.ReportEvents)
	r.Events = batch
	if err := link.Send(r); err != nil {
		a.log.Debug("events did not leave", "error", err)
	}
}

// eventsAcked: events have arrived. That need not be durable: told again, they are acknowledged again.
func (a *Agent) eventsAcked(cmd *gozzard.Command) {
	if cmd.AckEvents == 0 || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	log := &a.state.events
	if cmd.AckEvents <= log.acked || cmd.AckEvents > log.last() {
		return
	}
	if _, err := a.write(false, recordEventsAcked, &entry{Seq: cmd.AckEvents}); err != nil {
		log.ack(cmd.AckEvents)
	}

	a.plan.eventTries = 0
	a.plan.events = time.Time{}

	if len(log.untold()) > 0 {
		a.plan.events = a.o.Now()
	}
}
