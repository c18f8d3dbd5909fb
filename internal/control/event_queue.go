package control

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// What may wait to be recorded. An agent that gets no acknowledgement sends its events again, so nothing is lost when
// there is no room: the events wait on their hosts.
const (
	reportEvents  = 500       // of one report; the others of a longer one are not acknowledged, and come again
	reportBytes   = 256 << 10 // of one report
	waitingBytes  = 32 << 20  // of all
	waitingNotes  = 16        // that the server has made about one agent
	eventBytes    = 256       // that an event takes without its texts
	maxEventText  = 1 << 10   // bytes of a message
	maxEventWord  = 64        // bytes of a kind, and of the name of a signal
	eventsAtOnce  = 12_000    // that one agent may bring at once: more than it keeps for the server
	eventsASecond = 100       // that one agent may bring on and on
)

// eventReport has events of one agent that wait to be recorded.
type eventReport struct {
	from    gozzard.AgentID
	cloud   int
	session uint64 // in which they are acknowledged; 0: the server made them
	last    uint64 // acknowledges them, and those that are left out for good
	cut     bool   // the agent has sent more, for which there was no room
	events  []record.Event
	bytes   int
}

// eventSender is what is known of an agent that sends events.
type eventSender struct {
	seen    uint64 // the record has its events up to this number
	since   uint64 // first session with the journal that the numbers are of, if it is known
	waiting *eventReport
	notes   int       // that wait
	spent   float64   // of eventsAtOnce
	at      time.Time // when spent was right
}

// refill gives back what the agent may bring again.
func (s *eventSender) refill(now time.Time) {
	s.spent = max(0, s.spent-eventsASecond*max(0, now.Sub(s.at).Seconds()))
	s.at = now
}

// eventQueue has the reports that wait to be recorded, in the order in which they came. Of each agent there is one: so
// agents take turns, and one that sends very many events makes only itself wait.
type eventQueue struct {
	mu      sync.Mutex
	order   []*eventReport
	events  int
	bytes   int
	senders map[gozzard.AgentID]*eventSender
	wake    chan struct{} // has a value when something was added
}

func newEventQueue() *eventQueue {
	return &eventQueue{senders: map[gozzard.AgentID]*eventSender{}, wake: make(chan struct{}, 1)}
}

func (q *eventQueue) sender(agent gozzard.AgentID) *eventSender {
	s := q.senders[agent]
	if s == nil {
		s = &eventSender{}
		q.senders[agent] = s
	}
	return s
}

// offer adds a report to the one of the same agent that waits. known is true if the record has all its events. rule says
// why a report is not accepted.
func (q *eventQueue) offer(r *eventReport, now time.Time) (known bool, rule string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sender(r.from)
	if r.last <= s.seen {
		return true, ""
	}
	s.refill(now)
	if s.spent >= eventsAtOnce {
		return false, "event_rate"
	}

	free := waitingBytes - q.bytes
	if s.waiting != nil {
		r = s.waiting.with(r)
		free += s.waiting.bytes
	}
	if r.bytes > free {
		return false, "events_waiting"
	}
	if s.waiting != nil {
		q.replace(s.waiting, r)
		return false, ""
	}
	s.waiting = r
	q.add(r)
	return false, ""
}

// note adds an event that the server itself has noticed.
func (q *eventQueue) note(agent gozzard.AgentID, addr gozzard.HostAddr, e gozzard.Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sender(agent)
	if s.notes >= waitingNotes {
		return false
	}
	s.notes++
	e.Seq = 0
	q.add(&eventReport{from: agent, events: []record.Event{{Agent: agent, Addr: addr, Event: e}},
		bytes: eventBytes + len(e.Message)})
	return true
}

// add appends a report. mu is held.
func (q *eventQueue) add(r *eventReport) {
	q.order = append(q.order, r)
	q.count(len(r.events), r.bytes)
}

// replace gives a report that waits other events, in its place. mu is held.
func (q *eventQueue) replace(waiting, by *eventReport) {
	q.count(len(by.events)-len(waiting.events), by.bytes-waiting.bytes)
	*waiting = *by
}

// count notes how much more waits, and wakes the one that records it. mu is held.
func (q *eventQueue) count(events, bytes int) {
	q.events += events
	q.bytes += bytes
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// waiting is the number of events that wait.
func (q *eventQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events
}

// take removes the first reports, with about the given number of events.
func (q *eventQueue) take(most int) (list []*eventReport) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := 0; len(q.order) > 0 && n < most; {
		r := q.order[0]
		q.order[0] = nil
		q.order = q.order[1:]
		q.events -= len(r.events)
		q.bytes -= r.bytes
		n += len(r.events)
		if s := q.senders[r.from]; r.session == 0 {
			s.notes--
		} else {
			s.waiting = nil
		}
		list = append(list, r)
	}
	return list
}

// recorded notes that the events of a report are recorded, and how many of them were new.
func (q *eventQueue) recorded(r *eventReport, fresh int, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sender(r.from)
	s.seen = max(s.seen, r.last)
	s.refill(now)
	s.spent += float64(fresh)
}

// opened is for an agent that has had its journal since a session. With another journal than before the record decides
// which of its events are known. What waits of the journal before must not be recorded any more: its numbers may be higher
// than those of the new one, whose events would be taken for known.
func (q *eventQueue) opened(agent gozzard.AgentID, since uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.senders[agent]
	if s == nil || s.since == since {
		return
	}
	s.since, s.seen = since, 0
	if s.waiting != nil {
		q.replace(s.waiting, &eventReport{from: agent, session: s.waiting.session})
	}
}

// forget removes what is known of an agent that left the fleet.
func (q *eventQueue) forget(agent gozzard.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.senders[agent]; s != nil && s.waiting == nil && s.notes == 0 {
		delete(q.senders, agent)
	}
}

// add appends an event as it is recorded, unless the report has enough, and reports whether it did. Texts are cut: an
// agent may send anything. They are cloned: a short text must not keep the whole message alive that it came in.
func (r *eventReport) add(e gozzard.Event, addr gozzard.HostAddr) bool {
	cut := func(s string, most int) string {
		s = strings.ToValidUTF8(s[:min(len(s), most)], "")
		return strings.Clone(strings.ReplaceAll(s, "\x00", ""))
	}
	e.Message, e.Signal = cut(e.Message, maxEventText), cut(e.Signal, maxEventWord)
	e.Kind = gozzard.EventKind(cut(string(e.Kind), maxEventWord))
	e.Key = gozzard.Key{Namespace: strings.Clone(e.Key.Namespace), Name: strings.Clone(e.Key.Name)}
	return r.put(record.Event{Agent: r.from, Addr: addr, Event: e})
}

// put appends an event, unless the report has enough.
func (r *eventReport) put(e record.Event) bool {
	bytes := eventBytes + len(e.Message) + len(e.Signal) + len(e.Kind) + len(e.Key.Namespace) + len(e.Key.Name)
	if len(r.events) == reportEvents || len(r.events) > 0 && r.bytes+bytes > reportBytes {
		r.cut = true
		return false
	}
	r.events = append(r.events, e)
	r.bytes += bytes
	r.last = e.Seq
	return true
}

// with joins a report with a later one of the same agent, in the order of their numbers. An acknowledgement stands for all
// events up to its number, so none may be left out below it, whichever of the two begins first. What is too much is not
// acknowledged, and comes again.
func (r *eventReport) with(later *eventReport) *eventReport {
	// Behind one that was cut something is missing, unless the other one has it.
	end := uint64(math.MaxUint64)
	if r.cut && later.events[0].Seq > r.last {
		end = r.last
	}
	if later.cut && len(r.events) > 0 && r.events[0].Seq > later.last {
		end = later.last
	}

	// Take the lower number of both.
	both := &eventReport{from: later.from, cloud: later.cloud, session: later.session, cut: r.cut || later.cut}
	a, b := r.events, later.events
	for len(a)+len(b) > 0 {
		var next record.Event
		if len(b) == 0 || len(a) > 0 && a[0].Seq < b[0].Seq {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if len(both.events) > 0 && next.Seq == both.last {
			continue // it is in both
		}
		if next.Seq > end || !both.put(next) {
			return both
		}
	}

	both.last = max(r.last, later.last)
	return both
}
