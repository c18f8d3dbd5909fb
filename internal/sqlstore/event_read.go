package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const (
	// fewSources is how many sources are read one by one, by their index. Events of more are looked for in the order of
	// numbers: there are likely to be many.
	fewSources = 64
	// firstRange is how many events are looked at first for those of many sources.
	firstRange = 4096
	// clockSlack is how far the clock of an agent may be ahead of that of the server for a query by time to find its events.
	clockSlack = 24 * time.Hour
)

const (
	selectEventSources = `SELECT src, agent_id, namespace, name, cloud, ip, kind FROM event_sources`
	selectEvents       = `SELECT e.id, e.at, e.pid, e.code, e.known, e.core, e.signal, e.message, e.task_id, e.app,
		e.caller, s.agent_id, s.namespace, s.name, s.cloud, s.ip, s.kind FROM events e CROSS JOIN event_sources s
		WHERE s.src = e.src AND ` // CROSS: SQLite reads events first, in their order
)

var selectSourcesOf = withRows(selectEventSources+` WHERE agent_id IN (SELECT a FROM v)`, "a TEXT")

// EventState implements control.EventStore.
func (s *Store) EventState(ctx context.Context) (st record.EventState, err error) {
	defer s.timed("event_state", &err)()
	err = s.read.each(ctx, `SELECT name, value FROM counters WHERE name IN ('event', 'events_removed')`, nil,
		func(r *sql.Rows) error {
			var name string
			var value int64
			err := r.Scan(&name, &value)
			if name == "event" {
				st.Last = uint64(value)
			} else {
				st.Removed = uint64(value)
			}
			return err
		})
	return st, s.readError("the number of the newest event", err)
}

// Events implements control.EventStore. What a filter and the rights of a reader say is decided for each source, not for
// each event; only times and numbers differ between the events of a source.
func (s *Store) Events(ctx context.Context, q record.EventQuery) (events []record.Event, err error) {
	defer s.timed("events", &err)()
	if since := q.Filter.Since; !since.IsZero() {
		q.After = max(q.After, uint64(max(0, since.Add(-clockSlack).UnixMicro())))
	}
	if q.Limit <= 0 || q.UpTo <= q.After {
		return nil, nil
	}

	// Events of all.
	if q.Filter.AllSources() && q.Sees == nil {
		events, err = s.findEvents(ctx, &q, nil)
		return events, s.readError("events", err)
	}

	// Events of many.
	sources, err := s.eventSources(ctx, &q)
	if err != nil {
		return nil, s.readError("what events are about", err)
	}
	if len(sources) > fewSources {
		events, err = s.eventsOfMany(ctx, q, sources)
		return events, s.readError("events", err)
	}

	// Events of few.
	for _, src := range sources {
		list, err := s.findEvents(ctx, &q, func(w *where) { w.and("e.src = " + w.arg(src)) })
		if err != nil {
			return nil, s.readError("events of a process", err)
		}
		events = append(events, list...)
	}
	slices.SortFunc(events, func(a, b record.Event) int { return cmp.Compare(a.ID, b.ID) })
	if extra := len(events) - q.Limit; extra > 0 && q.Newest {
		events = events[extra:]
	} else if extra > 0 {
		events = events[:q.Limit]
	}
	return events, nil
}

// eventsOfMany looks for events of many sources in one range of numbers after the other. The first one is small: most
// pages are full then. The database would read all events to find those of a list.
func (s *Store) eventsOfMany(ctx context.Context, q record.EventQuery, sources []int64) (events []record.Event, err error) {
	for size := firstRange; len(events) < q.Limit && q.UpTo > q.After; size *= 4 {
		// Find the end of the range.
		edge, err := s.eventEdge(ctx, &q, size)
		if err != nil {
			return nil, err
		}
		part := q
		part.Limit -= len(events)
		switch {
		case edge == 0: // there are fewer
			q.UpTo = q.After
		case q.Newest:
			part.After, q.UpTo = edge-1, edge-1
		default:
			part.UpTo, q.After = edge, edge
		}

		// Read it. The plus keeps SQLite from reading all events of the sources by their index.
		list, err := s.findEvents(ctx, &part, func(w *where) { w.in("+e.src", s.d.jsonNumbers, len(sources), sources) })
		if err != nil {
			return nil, err
		}
		if q.Newest {
			events = append(list, events...)
		} else {
			events = append(events, list...)
		}
	}
	return events, nil
}

// eventEdge is the number of the event that ends a range of the given size; 0: there are not so many.
func (s *Store) eventEdge(ctx context.Context, q *record.EventQuery, size int) (edge uint64, err error) {
	text := `SELECT id FROM events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT 1 OFFSET $3`
	if q.Newest {
		text = `SELECT id FROM events WHERE id > $1 AND id <= $2 ORDER BY id DESC LIMIT 1 OFFSET $3`
	}
	err = s.read.each(ctx, text, []any{counter(q.After), counter(q.UpTo), size - 1}, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		edge = uint64(id)
		return err
	})
	return edge, err
}

// eventSources lists the sources whose events can be chosen.
func (s *Store) eventSources(ctx context.Context, q *record.EventQuery) (list []int64, err error) {
	scan := func(r *sql.Rows) error {
		var number int64
		var src eventSource
		if err := r.Scan(append([]any{&number}, src.into()...)...); err != nil {
			return err
		}
		agent, key := gozzard.AgentID(src.agent), gozzard.Key{Namespace: src.namespace, Name: src.name}
		if !q.Filter.FitsSource(agent, key, gozzard.EventKind(src.kind)) {
			return nil
		}
		addr, err := hostAddr(src.cloud, src.ip)
		if err == nil && (q.Sees == nil || q.Sees(agent, addr, src.namespace)) {
			list = append(list, number)
		}
		return err
	}

	if agents := q.Filter.Agents; len(agents) > 0 {
		err = s.read.queryRows(ctx, selectSourcesOf, len(agents), func(i int, to []any) []any {
			return append(to, text(string(agents[i])))
		}, scan)
		return list, err
	}
	return list, s.read.each(ctx, selectEventSources, nil, scan)
}

// findEvents reads events of the sources that of chooses, or of all, the oldest first.
func (s *Store) findEvents(ctx context.Context, q *record.EventQuery, of func(*where)) (events []record.Event, err error) {
	// Choose.
	w := &where{}
	w.and("e.id > " + w.arg(counter(q.After)))
	w.and("e.id <= " + w.arg(counter(q.UpTo)))
	if since := q.Filter.Since; !since.IsZero() {
		w.and("e.at >= " + w.arg(since.UnixMilli()))
	}
	if of != nil {
		of(w)
	}
	if w.err != nil {
		return nil, fmt.Errorf("cannot encode a filter of events: %w", w.err)
	}

	// Read.
	order := " ORDER BY e.id"
	if q.Newest {
		order += " DESC"
	}
	err = s.read.each(ctx, selectEvents+w.text.String()+order+" LIMIT "+w.arg(int64(q.Limit)), w.args,
		func(r *sql.Rows) error { return scanEvent(r, &events) })
	if q.Newest {
		slices.Reverse(events)
	}
	return events, err
}

func scanEvent(r *sql.Rows, to *[]record.Event) error {
	var e record.Event
	var id int64
	var src eventSource
	err := r.Scan(append([]any{&id, &e.At, &e.PID, &e.Code, &e.Known, &e.Core, &e.Signal, &e.Message, (*taskID)(&e.Task),
		&e.App, &e.User}, src.into()...)...)
	if err != nil {
		return err
	}
	e.ID, e.Kind, e.Agent = uint64(id), gozzard.EventKind(src.kind), gozzard.AgentID(src.agent)
	e.Key = gozzard.Key{Namespace: src.namespace, Name: src.name}
	e.Addr, err = hostAddr(src.cloud, src.ip)
	*to = append(*to, e)
	return err
}
