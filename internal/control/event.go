package control

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// EventStore has the events of the fleet.
type EventStore interface {
	// AddEvents records events in one transaction. It draws their numbers and fills in their IDs. An event of an agent
	// that is recorded already, by its Seq, is left out: its ID is 0. An agent with
	// a new journal begins again. Events with Seq 0 are the server's own. It returns
	// the number of the newest event before them; with the first call that is the time.
	AddEvents(ctx context.Context, events []record.Event) (before uint64, err error)
	// EventState says which numbers there are.
	EventState(ctx context.Context) (record.EventState, error)
	// Events reads events, the oldest first.
	Events(ctx context.Context, q record.EventQuery) ([]record.Event, error)
	// PruneEvents removes events that are not kept any more, in small steps, and returns how many. It ends with the
	// context.
	PruneEvents(ctx context.Context, keep record.EventKeep) (int, error)
	// EventCauses reads the attempts that events name as their causes. Those that are not recorded are left out.
	EventCauses(ctx context.Context, refs []gozzard.AttemptRef) (map[gozzard.AttemptRef]record.EventCause, error)
}

// eventReads is how many callers may read events from the record at once. The newest are in memory.
const eventReads = 4

// LastEvent is the number of the newest event.
func (p *Plane) LastEvent() uint64 { return p.events.Last() }

// Events gives the newest events that fit and the caller may see, oldest first.
func (p *Plane) Events(ctx context.Context, caller gozzard.Caller, f record.EventFilter,
	limit int) (record.EventPage, error) {
	// Look in memory.
	page, floor := p.events.Newest(f, p.eventSight(caller), limit)

	// Look for older ones in the record.
	if left := limit - len(page.Events); left > 0 && floor > 0 {
		older, err := p.readEvents(ctx, caller, record.EventQuery{UpTo: floor, Filter: f, Newest: true, Limit: left})
		if err != nil {
			return page, err
		}
		page.Events = append(older, page.Events...)
	}

	hideCauses(caller, page.Events)
	return page, nil
}

// EventsAfter gives events that fit behind a number. The channel is closed when there may be more; with a full page
// there may be more at once.
func (p *Plane) EventsAfter(ctx context.Context, caller gozzard.Caller, f record.EventFilter, id uint64,
	limit int) (page record.EventPage, changed <-chan struct{}, err error) {
	page, changed, place := p.events.After(f, p.eventSight(caller), id, limit)
	switch place {
	case EventsOlder:
		page, err = p.olderEvents(ctx, caller, record.EventQuery{After: id, UpTo: page.Next, Filter: f, Limit: limit})
	case EventsAhead:
		page, err = p.eventsAhead(ctx, id)
	}

	hideCauses(caller, page.Events)
	return page, changed, err
}

// olderEvents answers a reader whose place is not in memory any more.
func (p *Plane) olderEvents(ctx context.Context, caller gozzard.Caller, q record.EventQuery) (page record.EventPage,
	err error) {
	page.Next = q.UpTo
	if page.Events, err = p.readEvents(ctx, caller, q); err != nil {
		return record.EventPage{Next: q.After}, err
	}
	if n := len(page.Events); n > 0 && n == q.Limit {
		page.Next = page.Events[n-1].ID
	}

	// Look which were removed after the others were read: what is removed meanwhile counts.
	st, err := p.o.Store.EventState(ctx)
	page.Lost = q.After != 0 && q.After < st.Removed
	return page, err
}

// eventsAhead answers a reader that has seen a higher number than this server: another server of this record has given it
// out just now, or the reader comes from another record and begins here.
func (p *Plane) eventsAhead(ctx context.Context, id uint64) (record.EventPage, error) {
	st, err := p.o.Store.EventState(ctx)
	if err != nil {
		return record.EventPage{Next: id}, err
	}
	if id > st.Last {
		return record.EventPage{Next: st.Last, Lost: true}, nil
	}
	p.NotifyEvents()
	return record.EventPage{Next: id}, nil
}

// readEvents reads events from the record, for a few callers at a time.
func (p *Plane) readEvents(ctx context.Context, caller gozzard.Caller, q record.EventQuery) ([]record.Event, error) {
	select {
	case p.eventReads <- struct{}{}:
		defer func() { <-p.eventReads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if !caller.Rights.SeesAll() {
		q.Sees = p.sight(caller.Rights)
	}
	events, err := p.o.Store.Events(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("cannot read events: %w", err)
	}
	return events, nil
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
