package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// How the ring follows the record.
const (
	eventPoll  = time.Second // between looks for events that other servers have recorded
	eventRead  = 5000        // events of other servers that are read at once
	eventPrune = time.Minute // between looks for events that are not kept any more
	eventAgain = time.Second // after a look that found many: hosts that flood bring more meanwhile
)

// NotifyEvents says that another server may have recorded events.
func (p *Plane) NotifyEvents() {
	select {
	case p.eventsElsewhere <- struct{}{}:
	default:
	}
}

// beginEvents draws the first number of a new record: a reader that waits for the first event has a place then. Without
// room on the disk it is drawn later.
func (p *Plane) beginEvents(ctx context.Context) {
	if p.events.Last() > 0 {
		return
	}
	_, err := p.o.Store.AddEvents(ctx, nil)
	if err == nil {
		err = p.loadEvents(ctx)
	}
	if err != nil {
		p.o.Log.Warn("cannot number events, trying again with the first one", "err", err)
	}
}

// loadEvents reads the newest events of the record into the ring.
func (p *Plane) loadEvents(ctx context.Context) error {
	st, err := p.o.Store.EventState(ctx)
	if err != nil {
		return err
	}
	events, err := p.o.Store.Events(ctx, record.EventQuery{UpTo: st.Last, Newest: true, Limit: p.o.Events})
	if err == nil {
		p.events.Load(st, events, len(events) < p.o.Events)
	}
	return err
}

// followRecord brings the ring in line with the record: other servers record events, and old ones are removed.
func (p *Plane) followRecord(ctx context.Context) {
	if err := p.readNewEvents(ctx); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("cannot read the newest events of the record, trying again", "err", err)
		time.AfterFunc(eventRetry, p.NotifyEvents)
	}
}

func (p *Plane) readNewEvents(ctx context.Context) error {
	st, err := p.o.Store.EventState(ctx)
	if err != nil {
		return err
	}
	if p.events.Removed(st.Removed) {
		return p.loadEvents(ctx)
	}

	for last := p.events.Last(); last < st.Last; last = p.events.Last() {
		events, err := p.o.Store.Events(ctx, record.EventQuery{After: last, UpTo: st.Last, Limit: eventRead})
		if err != nil {
			return err
		}
		p.events.Append(last, events)
		if len(events) < eventRead {
			p.events.Skip(st.Last)
		}
	}
	return nil
}

// PruneEvents removes events that are not kept any more until ctx ends. Of several servers one does it.
func (p *Plane) PruneEvents(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := p.o.Store.PruneEvents(ctx, record.EventKeep{Before: p.o.Now().Add(-p.o.KeepEvents), Most: p.o.MostEvents})
		if err != nil && ctx.Err() == nil {
			p.o.Log.Error("cannot remove old events, trying again later", "err", err)
		}
		wait := eventPrune
		if n > 0 {
			p.NotifyEvents()
			p.peers.noteEvents()
		}
		if n > p.o.MostEvents/50 {
			wait = eventAgain
		}

		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}
