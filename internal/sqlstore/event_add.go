package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// maxEventClock bounds what a wrong clock can do to the numbers of events: they stay below 2^53, the largest integer that
// every JSON reader knows.
const maxEventClock = 1 << 52

var (
	selectEventMarks = withRows(`SELECT m.agent_id, m.seq FROM v JOIN event_marks m ON m.agent_id = v.a`, "a TEXT")
	upsertEventMarks = insertRows("event_marks", "agent_id, seq", " ON CONFLICT (agent_id) DO UPDATE SET seq = excluded.seq")
	selectSources    = withRows(`SELECT s.src, s.agent_id, s.namespace, s.name, s.cloud, s.ip, s.kind FROM v JOIN event_sources s
		ON s.agent_id = v.a AND s.namespace = v.s AND s.name = v.n AND s.cloud = v.c AND s.ip = v.i AND s.kind = v.k`,
		"a TEXT", "s TEXT", "n TEXT", "c BIGINT", "i TEXT", "k TEXT")
	insertSources = looseRows("event_sources", "src, agent_id, namespace, name, cloud, ip, kind")
	insertEvents  = looseRows("events",
		"id, src, at, pid, code, known, core, signal, message, task_id, app, caller")
)

// eventSource is what events are about and their kind, as table event_sources has it.
type eventSource struct {
	agent, namespace, name string
	cloud                  int64
	ip, kind               string
}

// into are the places for the columns of a source, in the order of the table.
func (s *eventSource) into() []any {
	return []any{&s.agent, &s.namespace, &s.name, &s.cloud, &s.ip, &s.kind}
}

// values are the columns of a source.
func (s *eventSource) values(to []any) []any {
	return append(to, s.agent, s.namespace, s.name, s.cloud, s.ip, s.kind)
}

func sourceOf(e *record.Event) eventSource {
	return eventSource{text(string(e.Agent)), text(e.Key.Namespace), text(e.Key.Name), int64(e.Addr.Cloud),
		ipText(e.Addr.IP), text(string(e.Kind))}
}

// AddEvents implements control.EventStore.
func (s *Store) AddEvents(ctx context.Context, events []record.Event) (before uint64, err error) {
	defer s.timed("add_events", &err)()
	err = s.w.submit(ctx, &job{op: "events", rows: len(events), grows: true,
		run: func(ctx context.Context, c *conn) (err error) {
			before, err = s.addEvents(ctx, c, events)
			return err
		}})
	return before, err
}

// addEvents holds the counter until the commit, so the order of numbers is the order of commits.
func (s *Store) addEvents(ctx context.Context, c *conn, events []record.Event) (before uint64, err error) {
	// Hold the counter.
	var last int64
	if _, err := c.one(ctx, `SELECT value FROM counters WHERE name = 'event'`+c.d.forUpdate, nil, &last); err != nil {
		return 0, err
	}
	if last == 0 { // earlier versions gave out numbers up to the clock, and did not record their events
		last = s.eventClock()
		if _, err := c.change(ctx, `UPDATE counters SET value = $1 WHERE name IN ('event', 'events_removed')`, last); err != nil {
			return 0, err
		}
	}
	before = uint64(last)

	// Find those that are not recorded yet.
	fresh, err := markEvents(ctx, c, events)
	if err != nil || len(fresh) == 0 {
		return before, err
	}
	sources, err := sourceNumbers(ctx, c, fresh)
	if err != nil {
		return 0, err
	}

	// Number and insert them.
	last = max(last, s.eventClock())
	for i, e := range fresh {
		e.ID = uint64(last) + 1 + uint64(i)
	}
	err = c.execRows(ctx, insertEvents, len(fresh), func(i int, to []any) []any {
		e := fresh[i]
		task := ""
		if e.Task != "" {
			task = taskname.Of(e.Task)
		}
		return append(to, int64(e.ID), sources[sourceOf(e)], e.At, int64(e.PID), int64(e.Code),
			e.Known, e.Core, text(e.Signal), text(e.Message), text(task), text(e.App), text(e.User))
	})
	if err != nil {
		return 0, err
	}
	_, err = c.change(ctx, `UPDATE counters SET value = $1 WHERE name = 'event'`, last+int64(len(fresh)))
	return before, err
}

// eventClock is the lowest number that an event may have now.
func (s *Store) eventClock() int64 { return min(max(1, s.o.Now().UnixMicro()), maxEventClock) }

// markEvents gives the events that are not recorded yet, and records up to which number each agent is known. An event
// without a number is the server's own.
func markEvents(ctx context.Context, c *conn, events []record.Event) (fresh []*record.Event, err error) {
	// Read how far each agent is known.
	marks := map[gozzard.AgentID]uint64{}
	var agents []gozzard.AgentID
	for i := range events {
		events[i].ID = 0
		if _, known := marks[events[i].Agent]; !known && events[i].Seq > 0 {
			marks[events[i].Agent] = 0
			agents = append(agents, events[i].Agent)
		}
	}
	err = c.queryRows(ctx, selectEventMarks, len(agents), func(i int, to []any) []any {
		return append(to, text(string(agents[i])))
	}, func(r *sql.Rows) error {
		var agent string
		var seq int64
		err := r.Scan(&agent, &seq)
		marks[gozzard.AgentID(agent)] = uint64(seq)
		return err
	})
	if err != nil {
		return nil, err
	}

	// Choose those behind it.
	moved := map[gozzard.AgentID]bool{}
	for i := range events {
		e := &events[i]
		if e.Seq > 0 {
			seq := min(e.Seq, math.MaxInt64)
			if seq <= marks[e.Agent] {
				continue
			}
			marks[e.Agent], moved[e.Agent] = seq, true
		}
		fresh = append(fresh, e)
	}

	agents = slices.DeleteFunc(agents, func(a gozzard.AgentID) bool { return !moved[a] })
	return fresh, c.execRows(ctx, upsertEventMarks, len(agents), func(i int, to []any) []any {
		return append(to, text(string(agents[i])), int64(marks[agents[i]]))
	})
}

// sourceNumbers gives the numbers of the sources of events. Sources that are new get one.
func sourceNumbers(ctx context.Context, c *conn, events []*record.Event) (map[eventSource]int64, error) {
	// Look for them.
	numbers := map[eventSource]int64{}
	var list []eventSource
	for _, e := range events {
		src := sourceOf(e)
		if _, known := numbers[src]; !known {
			numbers[src] = 0
			list = append(list, src)
		}
	}
	err := c.queryRows(ctx, selectSources, len(list), func(i int, to []any) []any {
		return list[i].values(to)
	}, func(r *sql.Rows) error {
		var number int64
		var src eventSource
		err := r.Scan(append([]any{&number}, src.into()...)...)
		numbers[src] = number
		return err
	})
	if err != nil {
		return nil, err
	}

	// Add the new ones.
	list = slices.DeleteFunc(list, func(src eventSource) bool { return numbers[src] > 0 })
	if len(list) == 0 {
		return numbers, nil
	}
	last, err := nextNumbers(ctx, c, "event_source", len(list))
	if err != nil {
		return nil, err
	}
	for i, src := range list {
		numbers[src] = last - int64(len(list)-1-i)
	}
	return numbers, c.execRows(ctx, insertSources, len(list), func(i int, to []any) []any {
		return list[i].values(append(to, numbers[list[i]]))
	})
}
