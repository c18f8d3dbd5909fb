package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// When there are too many events, a twentieth of the permitted number is removed at once: finding out which ones takes a
// look at all of them.
const eventRoom = 20

var (
	deleteUnused = withRows(`DELETE FROM event_sources WHERE src IN (SELECT s FROM v)
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.src = event_sources.src)`, "s BIGINT")
	countEvents = `SELECT n.src, n.count, s.agent_id, s.namespace
		FROM (SELECT src, COUNT(*) AS count FROM events GROUP BY src) n JOIN event_sources s ON s.src = n.src`
)

// PruneEvents implements control.EventStore. Each step is one small transaction, and it rests after each, so that other
// writes do not wait long.
func (s *Store) PruneEvents(ctx context.Context, keep record.EventKeep) (removed int, err error) {
	defer s.timed("prune_events", &err)()

	// Remove the old ones.
	old := keep.Before.UnixMicro()
	for n := maxPruneRows; n == maxPruneRows; removed += n {
		if err := s.pruneStep(ctx, func(ctx context.Context, c *conn) (err error) {
			n, err = deleteOldEvents(ctx, c, old)
			return err
		}); err != nil {
			return removed, err
		}
	}

	// Count the others.
	var count int64
	if err := s.read.each(ctx, `SELECT COUNT(*) FROM events`, nil, func(r *sql.Rows) error { return r.Scan(&count) }); err != nil {
		return removed, s.readError("the number of events", err)
	}
	if keep.Most <= 0 || count <= int64(keep.Most) {
		return removed, nil
	}

	// Remove the oldest of the sources with the most.
	counts, err := s.countEvents(ctx)
	if err != nil {
		return removed, s.readError("the numbers of events", err)
	}
	for list := surplusEvents(counts, int64(keep.Most-keep.Most/eventRoom)); len(list) > 0; {
		var n int
		var left []surplus
		if err := s.pruneStep(ctx, func(ctx context.Context, c *conn) (err error) {
			n, left, err = deleteSurplus(ctx, c, list)
			return err
		}); err != nil {
			return removed, err
		}
		removed += n
		list = left
	}
	return removed, nil
}

// pruneStep runs one step, and rests twice as long as it took.
func (s *Store) pruneStep(ctx context.Context, step func(context.Context, *conn) error) error {
	start := time.Now()
	if err := s.w.submit(ctx, &job{op: "the removal of events", rows: maxPruneRows, run: step}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Since(start)):
	}
	return ctx.Err()
}

// deleteOldEvents is one step: it removes events with numbers below the given one.
func deleteOldEvents(ctx context.Context, c *conn, below int64) (n int, err error) {
	last := below - 1
	if _, err := c.one(ctx, `SELECT id FROM events WHERE id < $1 ORDER BY id LIMIT 1 OFFSET $2`,
		[]any{below, maxPruneRows - 1}, &last); err != nil {
		return 0, err
	}
	var sources []int64
	if err := c.each(ctx, `DELETE FROM events WHERE id <= $1 RETURNING src`, []any{last},
		func(r *sql.Rows) error { return scanSeq(r, &sources) }); err != nil || len(sources) == 0 {
		return 0, err
	}
	return len(sources), forgetEvents(ctx, c, last, sources)
}

// surplus is how many events of a source are removed.
type surplus struct{ src, events int64 }

// deleteSurplus is one step: it removes the oldest events of some sources, and returns what is left to do.
func deleteSurplus(ctx context.Context, c *conn, list []surplus) (n int, left []surplus, err error) {
	var newest int64
	var sources []int64
	left = slices.Clone(list) // the step may run again after a rollback
	for len(left) > 0 && n < maxPruneRows {
		first := &left[0]
		some := min(first.events, int64(maxPruneRows-n))
		var last int64
		found, err := c.one(ctx, `SELECT id FROM events WHERE src = $1 ORDER BY id LIMIT 1 OFFSET $2`,
			[]any{first.src, some - 1}, &last)
		if err != nil {
			return 0, nil, err
		}
		if found { // not if another server has removed them
			if _, err := c.change(ctx, `DELETE FROM events WHERE src = $1 AND id <= $2`, first.src, last); err != nil {
				return 0, nil, err
			}
			newest = max(newest, last)
			sources = append(sources, first.src)
		}
		n += int(some)
		if first.events -= some; first.events == 0 {
			left = left[1:]
		}
	}
	return n, left, forgetEvents(ctx, c, newest, sources)
}

// forgetEvents notes which events were removed, and removes the sources that have no more.
func forgetEvents(ctx context.Context, c *conn, last int64, sources []int64) error {
	if _, err := c.change(ctx, `UPDATE counters SET value = $1 WHERE name = 'events_removed' AND value < $1`, last); err != nil {
		return err
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	return c.execRows(ctx, deleteUnused, len(sources), func(i int, to []any) []any { return append(to, sources[i]) })
}

// sourceCount is how many events of a source there are. The host and the namespace of the source are numbers.
type sourceCount struct {
	src, events     int64
	host, namespace int
}

func (s *Store) countEvents(ctx context.Context) (list []sourceCount, err error) {
	hosts, namespaces := map[string]int{}, map[string]int{}
	number := func(of map[string]int, name string) int {
		n, known := of[name]
		if !known {
			n = len(of)
			of[name] = n
		}
		return n
	}

	err = s.read.each(ctx, countEvents, nil, func(r *sql.Rows) error {
		var n sourceCount
		var agent, namespace string
		err := r.Scan(&n.src, &n.events, &agent, &namespace)
		n.host, n.namespace = number(hosts, agent), number(namespaces, namespace)
		list = append(list, n)
		return err
	})
	return list, err
}

// surplusEvents decides which sources have to give up how many events, so that the given number stays. Hosts share the
// room: only those with the most give up events. In the same way the namespaces of a host share what it has, and the
// processes of a namespace on that host, with each kind of events for itself.
func surplusEvents(list []sourceCount, keep int64) (out []surplus) {
	byHost := func(n sourceCount) int { return n.host }
	bySpace := func(n sourceCount) int { return n.namespace }
	bySource := func(n sourceCount) int { return int(n.src) }

	share(list, keep, byHost, func(list []sourceCount, keep int64) {
		share(list, keep, bySpace, func(list []sourceCount, keep int64) {
			share(list, keep, bySource, func(list []sourceCount, keep int64) {
				out = append(out, surplus{list[0].src, list[0].events - keep})
			})
		})
	})
	return out
}

// share divides the room for events among owners: all of the same size, and none gets more than it has. It calls less for
// each owner that gets less than it has.
func share(list []sourceCount, keep int64, owner func(sourceCount) int, less func(list []sourceCount, keep int64)) {
	// Put together what belongs to one owner.
	slices.SortStableFunc(list, func(a, b sourceCount) int { return cmp.Compare(owner(a), owner(b)) })
	type part struct {
		list   []sourceCount
		events int64
	}
	var parts []part
	for from := 0; from < len(list); {
		p := part{}
		to := from
		for to < len(list) && owner(list[to]) == owner(list[from]) {
			p.events += list[to].events
			to++
		}
		p.list = list[from:to]
		parts = append(parts, p)
		from = to
	}

	// Give out the room, to the smallest first: what they do not use is for the others.
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.events, b.events) })
	for i, p := range parts {
		gets := min(p.events, keep/int64(len(parts)-i))
		keep -= gets
		if gets < p.events {
			less(p.list, gets)
		}
	}
}
