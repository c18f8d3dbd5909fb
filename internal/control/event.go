package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fairlist"
	"github.com/gozzard/gozzard/internal/record"
)

// EventRing has the newest events. Namespaces share its room: when it is full, the oldest event of the namespace with the
// most events is dropped. A reader has a place in it and no buffer, so a slow reader costs nothing.
type EventRing struct {
	mu      sync.Mutex
	list    *fairlist.List[record.Event]
	lastID  uint64
	dropped uint64 // the highest number of a dropped event
	seen    map[gozzard.AgentID]uint64
	changed chan struct{} // closed when something is added; nil when no reader waits
}

// NewEventRing makes an empty one. Numbers begin with the clock, so that a reader's place is valid after a restart.
func NewEventRing(most int, now time.Time) *EventRing {
	first := uint64(max(1, now.UnixMicro()))
	return &EventRing{list: fairlist.New[record.Event](most), lastID: first, dropped: first,
		seen: map[gozzard.AgentID]uint64{}}
}

// Add adds events of an agent; those that the agent repeats are ignored.
func (r *EventRing) Add(agent gozzard.AgentID, addr gozzard.HostAddr, events []gozzard.Event,
	causes map[gozzard.AttemptRef]record.EventCause) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, e := range events {
		if e.Seq <= r.seen[agent] {
			continue
		}
		r.seen[agent] = e.Seq
		// Cloned: a short string must not keep the whole message alive that it came in.
		e.Message, e.Signal, e.Kind = strings.Clone(e.Message), strings.Clone(e.Signal),
			gozzard.EventKind(strings.Clone(string(e.Kind)))
		e.Key = gozzard.Key{Namespace: strings.Clone(e.Key.Namespace), Name: strings.Clone(e.Key.Name)}
		r.put(agent, addr, e, causes[e.Cause.Ref])
	}

	r.wakeReaders()
}

// Note adds an event that the server itself has noticed about an agent.
func (r *EventRing) Note(agent gozzard.AgentID, addr gozzard.HostAddr, e gozzard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(agent, addr, e, record.EventCause{})
	r.wakeReaders()
}

// put adds one event. An agent may claim any cause, so the claim counts only if the record has that very operation for
// this agent and this process. mu is held.
func (r *EventRing) put(agent gozzard.AgentID, addr gozzard.HostAddr, e gozzard.Event, cause record.EventCause) {
	r.lastID++
	ev := record.Event{ID: r.lastID, Agent: agent, Addr: addr, Event: e}
	if !e.Cause.IsZero() && cause.Op == e.Cause.Op && cause.Agent == agent && cause.Key == e.Key {
		ev.Task, ev.App, ev.User = cause.Task, cause.App, cause.User
	}
	ev.Cause = gozzard.Cause{}
	if id, dropped := r.list.Add(e.Key.Namespace, ev.ID, ev); dropped {
		r.dropped = max(r.dropped, id)
	}
}

// wakeReaders lets the readers go on that wait for events. mu is held.
func (r *EventRing) wakeReaders() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Newest gives the last events that fit and may be seen, oldest first.
func (r *EventRing) Newest(f record.EventFilter, sees func(*record.Event) bool, limit int) record.EventPage {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := record.EventPage{Next: r.lastID}
	for e := range r.list.Backward() {
		if len(p.Events) >= limit {
			break
		}
		if f.Fits(e) && sees(e) {
			p.Events = append(p.Events, *e)
		}
	}
	slices.Reverse(p.Events)
	return p
}

// After gives the first events that fit and may be seen behind a number, and a channel that is closed when there
// may be more.
func (r *EventRing) After(f record.EventFilter, sees func(*record.Event) bool, id uint64,
	limit int) (record.EventPage, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if id > r.lastID { // of a server whose clock was ahead: begin here
		id = r.lastID
	}

	p := record.EventPage{Next: id, Lost: id != 0 && id < r.dropped}
	full := false
	for e := range r.list.After(id) {
		if full = len(p.Events) >= limit; full {
			break
		}
		if p.Next = e.ID; f.Fits(e) && sees(e) {
			p.Events = append(p.Events, *e)
		}
	}
	if !full { // what was dropped is behind the reader now
		p.Next = r.lastID
	}

	if r.changed == nil {
		r.changed = make(chan struct{})
	}

	return p, r.changed
}

// Events gives the newest events that fit and the caller may see, oldest first.
func (p *Plane) Events(caller gozzard.Caller, f record.EventFilter, limit int) record.EventPage {
	page := p.events.Newest(f, p.eventSight(caller), limit)
	hideCauses(caller, page.Events)
	return page
}

// EventsAfter gives events that fit behind a number. The channel is closed when there may be more; with a full page
// there may be more at once.
func (p *Plane) EventsAfter(caller gozzard.Caller, f record.EventFilter, id uint64, limit int) (record.EventPage,
	<-chan struct{}) {
	page, changed := p.events.After(f, p.eventSight(caller), id, limit)
	hideCauses(caller, page.Events)
	return page, changed
}

// hideCauses removes the tasks that a caller may not read (Results), and the people behind them. A task of another
// person with the same app is shown to callers that see everything: for others the whole task would have to be read.
func hideCauses(caller gozzard.Caller, events []record.Event) {
	for i := range events {
		e := &events[i]
		if e.Task != "" && (!caller.ReadsTasksOf(e.App) || e.User != caller.User && !caller.Rights.SeesAll()) {
			e.Task, e.App, e.User = "", "", ""
		}
	}
}

func (p *Plane) eventSight(caller gozzard.Caller) func(*record.Event) bool {
	sees := p.sight(caller.Rights)
	return func(e *record.Event) bool { return sees(e.Agent, e.Addr, e.Key.Namespace) }
}

// receiveEvents adds events to the ring and acknowledges them.
func (p *Plane) receiveEvents(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if len(r.Events) == 0 || !slices.IsSortedFunc(r.Events,
		func(a, b gozzard.Event) int { return cmp.Compare(a.Seq, b.Seq) }) {
		p.reject("events_order", from)
		return
	}

	addr := gozzard.HostAddr{Cloud: cloud}

	if h, ok := p.o.Live.Host(from); ok && len(h.Info.Addrs) > 0 {
		addr = h.Info.Addrs[0]
	}

	causes, err := p.eventCauses(r.Events)
	if err != nil { // not acknowledged: the agent sends them again
		p.o.Log.Warn("cannot read which operations caused events", "agent", from, "err", err)
		return
	}
	p.events.Add(from, addr, r.Events, causes)
	last := r.Events[len(r.Events)-1].Seq
	p.acknowledge(from, cloud, &gozzard.Command{Session: r.Session, AckEvents: last})
}

// causeTime is how long the record may take to answer which operations caused the events of a report.
const causeTime = 5 * time.Second

// eventCauses reads what the record has about the operations that events name.
func (p *Plane) eventCauses(events []gozzard.Event) (map[gozzard.AttemptRef]record.EventCause, error) {
	asked := map[gozzard.AttemptRef]bool{}
	var refs []gozzard.AttemptRef
	for i := range events {
		if ref := events[i].Cause.Ref; ref.Task > 0 && ref.Index >= 0 && !asked[ref] {
			asked[ref] = true
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), causeTime)
	defer cancel()
	return p.o.Store.EventCauses(ctx, refs)
}
