package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/gozzard/gozzard"
)

// Limits of one step of pruning. Each step is one transaction. It is small, so that other writes do not wait long and
// so that it fits into the reserve file of a full disk.
const (
	maxPruneTasks = 256
	maxPruneRows  = 1000
	maxPruneSpecs = 500
)

// selectFinished finds old tasks without open attempts. It takes as long as there are open attempts, so a reader runs
// it and not the writer. A finished task stays finished.
const selectFinished = `SELECT seq FROM tasks WHERE accepted_at < $1
	AND seq NOT IN (SELECT task_seq FROM attempts WHERE state < 4)
	ORDER BY accepted_at, seq LIMIT $2`

var (
	deleteTaskRows = withRows(`DELETE FROM tasks WHERE seq IN (SELECT t FROM v)
		RETURNING seq, task_id, app, caller, asserted, door, accepted_at, targets, trace, unsettled`,
		"t BIGINT")
	insertGarbage  = insertRows("garbage", "task_seq", " ON CONFLICT (task_seq) DO NOTHING")
	deleteTaskKeys = withRows(`DELETE FROM idempotency WHERE task_seq IN (SELECT t FROM v)`, "t BIGINT")
)

// Prune implements control.Store. A task disappears for readers at once. Its attempts are removed afterwards, in steps;
// those that an earlier, interrupted Prune left behind as well.
func (s *Store) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	defer s.timed("prune", &err)()

	// Find old tasks.
	var old []int64
	rows, err := s.read.db.QueryContext(ctx, selectFinished, millis(before), max(0, min(limit, maxPruneTasks)))
	if err := s.readError("finished tasks", scanAll(rows, err,
		func(r *sql.Rows) error { return scanSeq(r, &old) })); err != nil {
		return 0, err
	}

	// Hide them from readers.
	if len(old) > 0 {
		remove := func(ctx context.Context, c *conn) (err error) {
			n, err = s.deleteTasks(ctx, c, old)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of tasks", rows: len(old), run: remove}); err != nil {
			return 0, err
		}
	}

	// Remove their rows, and definitions that nothing uses any more.
	if err := s.removeLeftovers(ctx, &taskLeftovers); err != nil {
		return n, err
	}

	return n, s.pruneSpecs(ctx)
}

func scanSeq(r *sql.Rows, to *[]int64) error {
	*to = append(*to, 0)
	return r.Scan(&(*to)[len(*to)-1])
}

// deleteTasks hides tasks from readers, with their idempotency keys, and lists them in the table garbage. Their
// verdicts stay in the audit; those of tasks of earlier versions are written there now. It returns how many tasks it deleted: another server may have deleted some before.
func (s *Store) deleteTasks(ctx context.Context, c *conn, old []int64) (int, error) {
	var gone, unsaid []gozzard.Task
	err := c.queryRows(ctx, deleteTaskRows, len(old), func(i int, to []any) []any { return append(to, old[i]) },
		func(r *sql.Rows) error {
			var t gozzard.Task
			var left int
			err := r.Scan(append(taskInto(&t), &left)...)
			gone = append(gone, t)
			if left != 0 {
				unsaid = append(unsaid, t)
			}
			return err
		})
	if err != nil {
		return 0, err
	}
	if err := auditVerdicts(ctx, c, unsaid, s.o.Now()); err != nil {
		return 0, err
	}

	seq := func(i int, to []any) []any { return append(to, int64(gone[i].Seq)) }
	if err := c.execRows(ctx, insertGarbage, len(gone), seq); err != nil {
		return 0, err
	}

	return len(gone), c.execRows(ctx, deleteTaskKeys, len(gone), seq)
}

// leftovers says how to remove the rows of tasks, or of jobs, that readers do not see any more.
type leftovers struct {
	next string   // SQL that finds one task or job
	rows []string // SQL that removes a limited number of its rows, one statement for each table
	done string   // SQL that removes it from the list of those to remove
}

var taskLeftovers = leftovers{
	next: `SELECT task_seq FROM garbage ORDER BY task_seq LIMIT 1`,
	rows: []string{
		`DELETE FROM attempts WHERE task_seq = $1
			AND idx IN (SELECT idx FROM attempts WHERE task_seq = $1 ORDER BY idx LIMIT $2)`,
		`DELETE FROM items WHERE task_seq = $1
			AND item IN (SELECT item FROM items WHERE task_seq = $1 ORDER BY item LIMIT $2)`,
	},
	done: `DELETE FROM garbage WHERE task_seq = $1`,
}

// removeLeftovers removes all leftovers of a kind, in steps.
func (s *Store) removeLeftovers(ctx context.Context, of *leftovers) error {
	for more := true; more; {
		step := func(ctx context.Context, c *conn) (err error) {
			more, err = removeSomeLeftovers(ctx, c, of)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of old results", rows: maxPruneRows, run: step}); err != nil {
			return err
		}
	}
	return nil
}

// removeSomeLeftovers is one step. It reports whether there may be more to remove.
func removeSomeLeftovers(ctx context.Context, c *conn, of *leftovers) (more bool, err error) {
	for left := int64(maxPruneRows); left > 0; {
		var id int64
		found, err := c.one(ctx, of.next, nil, &id)
		if err != nil || !found {
			return false, err
		}
		for _, q := range of.rows {
			n, err := c.change(ctx, q, id, left)
			if err != nil {
				return false, err
			}
			if left -= n; left <= 0 {
				return true, nil
			}
		}
		if _, err := c.change(ctx, of.done, id); err != nil {
			return false, err
		}
		left--
	}
	return true, nil
}

// pruneSpecs looks at some definitions, starting where the last call ended, and removes those that nothing uses any
// more. It goes on while it can remove a tenth of them. A definition is used by tasks up to its last_task, and by
// processes.
func (s *Store) pruneSpecs(ctx context.Context) error {
	for {
		seen, gone := int64(0), int64(0)
		run := func(ctx context.Context, c *conn) (err error) {
			seen, gone, err = s.pruneSomeSpecs(ctx, c)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of definitions", rows: maxPruneSpecs, run: run}); err != nil {
			return err
		}
		if gone*10 < seen || seen < maxPruneSpecs {
			return nil
		}
	}
}

// unusedSpecs finds the definitions between two hashes that neither a task since a number nor a process uses. A process
// uses the definition that it had before until its host has taken another one.
const unusedSpecs = `hash > $1 AND hash <= $2 AND last_task < $3
	AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.spec_hash = specs.hash)
	AND NOT EXISTS (SELECT 1 FROM processes WHERE former_spec = specs.hash AND (` + offerOpen + ` OR ` + offerNotTaken + `))`

// pruneSomeSpecs is one step. It returns how many definitions it looked at and how many it removed.
func (s *Store) pruneSomeSpecs(ctx context.Context, c *conn) (seen, gone int64, err error) {
	// Find the oldest task. Definitions whose last task is older are not used by tasks.
	oldest := sql.NullInt64{}
	if _, err := c.one(ctx, `SELECT MIN(seq) FROM tasks`, nil, &oldest); err != nil {
		return 0, 0, err
	}
	if !oldest.Valid {
		oldest.Int64 = math.MaxInt64
	}

	// Look at the next definitions.
	last := s.specCursor
	err = c.each(ctx, `SELECT hash FROM specs WHERE hash > $1 ORDER BY hash LIMIT $2`,
		[]any{s.specCursor, maxPruneSpecs},
		func(r *sql.Rows) error {
			seen++
			last = nil
			return r.Scan(&last)
		})
	if err != nil {
		return 0, 0, err
	}

	// Remove the unused ones. The audit keeps them.
	if seen > 0 {
		if _, err := c.change(ctx, keepSpecs+unusedSpecs+` ON CONFLICT (digest) DO NOTHING`, s.specCursor, last,
			oldest.Int64); err != nil {
			return 0, 0, err
		}
		gone, err = c.change(ctx, `DELETE FROM specs WHERE `+unusedSpecs, s.specCursor, last, oldest.Int64)
	}

	// Remember where to go on; after the last definition start again.
	if s.specCursor = last; seen < maxPruneSpecs {
		s.specCursor = []byte{}
	}

	return seen, gone, err
}
