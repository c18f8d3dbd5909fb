package control

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// How events are recorded. They are shown when they are recorded and not before: then a reader's place is a number that
// the record knows, on every server and after a crash. While nothing is under way an event is recorded at once.
const (
	eventPause   = 200 * time.Millisecond // between transactions with few events
	fewEvents    = 500                    // that do not wait for the pause
	batchedMost  = 2000                   // in one transaction
	eventRest    = 3                      // after a transaction, times its duration: operations are more urgent
	eventRestMax = time.Second
	eventRetry   = time.Second     // after an error
	eventStop    = 2 * time.Second // for the last events before the server stops
	causeTime    = 5 * time.Second // for the record to answer which operations caused events
)

// receiveEvents queues events of an agent. They are acknowledged when they are recorded.
func (p *Plane) receiveEvents(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if len(r.Events) == 0 || r.Session == 0 || !slices.IsSortedFunc(r.Events,
		func(a, b gozzard.Event) int { return cmp.Compare(a.Seq, b.Seq) }) || r.Events[len(r.Events)-1].Seq > math.MaxInt64 {
		p.reject("events_order", from)
		return
	}

	addr := gozzard.HostAddr{Cloud: cloud}
	if h, ok := p.o.Live.Host(from); ok && len(h.Info.Addrs) > 0 {
		addr = h.Info.Addrs[0]
	}
	report := &eventReport{from: from, cloud: cloud, session: r.Session}
	for _, e := range r.Events {
		if max(len(e.Key.Namespace), len(e.Key.Name)) > gozzard.MaxProcessNameBytes || e.Seq == 0 {
			p.reject("event_name", from)
			report.last = e.Seq
			continue
		}
		if !report.add(e, addr) {
			break
		}
	}
	if len(report.events) == 0 { // none can be recorded, and the agent need not send them again
		p.acknowledgeEvents(from, cloud, r.Session, report.last)
		return
	}

	switch known, rule := p.queue.offer(report, p.o.Now()); {
	case known:
		p.acknowledgeEvents(from, cloud, r.Session, report.last)
	case rule != "":
		p.reject(rule, from)
	}
}

func (p *Plane) acknowledgeEvents(to gozzard.AgentID, cloud int, session, last uint64) {
	p.acknowledge(to, cloud, &gozzard.Command{Session: session, AckEvents: last})
}

// note queues an event that the server itself has noticed about an agent.
func (p *Plane) note(agent gozzard.AgentID, addr gozzard.HostAddr, e gozzard.Event) {
	if !p.queue.note(agent, addr, e) {
		p.reject("events_waiting", agent)
	}
}

// eventLoop records events that wait. It is the only one that changes the ring.
func (p *Plane) eventLoop(ctx context.Context) {
	var poll <-chan time.Time
	if p.peers != nil {
		t := time.NewTicker(eventPoll)
		defer t.Stop()
		poll = t.C
	}

	var w eventWriter
	for {
		var due <-chan time.Time
		if n := p.queue.waiting(); n > 0 {
			due = time.After(w.wait(n, time.Now()))
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventStop)
			defer cancel()
			p.recordEvents(last, &w)
			return
		case <-p.queue.wake:
		case <-due:
			p.recordEvents(ctx, &w)
		case <-poll:
			p.followRecord(ctx)
		case <-p.eventsElsewhere:
			p.followRecord(ctx)
		}
	}
}

// eventWriter decides when events are recorded.
type eventWriter struct {
	began   time.Time // the last transaction
	rest    time.Time // until then no other one
	failing bool
}

// wait is how long a number of events has to wait.
func (w *eventWriter) wait(events int, now time.Time) time.Duration {
	at := w.rest
	if next := w.began.Add(eventPause); events < fewEvents && next.After(at) {
		at = next
	}
	return at.Sub(now)
}

// done notes how a transaction ended.
func (w *eventWriter) done(now time.Time, err error) {
	w.rest = now.Add(min(eventRest*now.Sub(w.began), eventRestMax))
	if err != nil {
		w.rest = now.Add(eventRetry)
	}
}

// recordEvents records the events that wait the longest, shows them to readers and acknowledges them.
func (p *Plane) recordEvents(ctx context.Context, w *eventWriter) {
	reports := p.queue.take(batchedMost)
	if len(reports) == 0 {
		return
	}
	w.began = time.Now()
	var events []record.Event
	for _, r := range reports {
		events = append(events, r.events...)
	}

	// Record them. After an error nothing is acknowledged, and the agents send their events again.
	before, err := p.addEvents(ctx, events)
	w.done(time.Now(), err)
	if err != nil {
		if !w.failing {
			p.o.Log.Warn("cannot record events; hosts keep theirs and send them again", "events", len(events), "err", err)
		}
		w.failing = true
		p.noteAgain(reports)
		return
	}
	if w.failing {
		p.o.Log.Info("events are recorded again")
		w.failing = false
	}

	p.showEvents(ctx, before, events)
	p.acknowledgeReports(reports, events)
}

// showEvents lets readers see the events that are new.
func (p *Plane) showEvents(ctx context.Context, before uint64, events []record.Event) {
	var fresh []record.Event
	for i := range events {
		if e := &events[i]; e.ID > 0 {
			e.Seq, e.Cause = 0, gozzard.Cause{}
			fresh = append(fresh, *e)
		}
	}
	if len(fresh) > 0 {
		p.peers.noteEvents()
	}
	if !p.events.Append(before, fresh) { // those of others are between, or of a transaction whose answer was lost
		p.followRecord(ctx)
	}
}

// acknowledgeReports says to agents that their events are recorded. events are those of all reports.
func (p *Plane) acknowledgeReports(reports []*eventReport, events []record.Event) {
	now := p.o.Now()
	for _, r := range reports {
		added := 0
		for i := range events[:len(r.events)] {
			if events[i].ID > 0 {
				added++
			}
		}
		events = events[len(r.events):]
		if r.last > 0 {
			p.queue.recorded(r, added, now)
			p.acknowledgeEvents(r.from, r.cloud, r.session, r.last)
		}
	}
}

// noteAgain queues what the server itself has noticed again. Nobody else would.
func (p *Plane) noteAgain(reports []*eventReport) {
	for _, r := range reports {
		if r.session == 0 {
			p.queue.note(r.from, r.events[0].Addr, r.events[0].Event)
		}
	}
}

// addEvents records events with what caused them. An agent may claim any cause, so the claim counts only if the record has
// that very operation for this agent and this process.
func (p *Plane) addEvents(ctx context.Context, events []record.Event) (before uint64, err error) {
	causes, err := p.eventCauses(ctx, events)
	if err != nil {
		return 0, err
	}
	for i := range events {
		e := &events[i]
		cause := causes[e.Cause.Ref]
		if !e.Cause.IsZero() && cause.Op == e.Cause.Op && cause.Agent == e.Agent && cause.Key == e.Key {
			e.Task, e.App, e.User = cause.Task, cause.App, cause.User
		}
	}
	return p.o.Store.AddEvents(ctx, events)
}

// eventCauses reads what the record has about the operations that events name.
func (p *Plane) eventCauses(ctx context.Context, events []record.Event) (map[gozzard.AttemptRef]record.EventCause, error) {
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

	ctx, cancel := context.WithTimeout(ctx, causeTime)
	defer cancel()
	return p.o.Store.EventCauses(ctx, refs)
}
