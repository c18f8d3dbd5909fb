package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/gozzard/gozzard"
)

// Steps of pruning, each a transaction of its own: small, so that nobody waits for it and so that it fits into the
// reserve of a full disk.
const (
	pruneTasks = 256
	pruneRows  = 1000
	sweepSpecs = 500
)

// selectFinished finds old tasks of which nothing is open. It costs as much as there is under way, so it is asked
// beside the writer: a task that is finished stays so.
const selectFinished = `SELECT seq FROM tasks WHERE accepted_at < $1 AND seq NOT IN (SELECT task_seq FROM attempts WHERE state < 4)
	ORDER BY accepted_at, seq LIMIT $2`

var (
	removeTasks = with(`DELETE FROM tasks WHERE seq IN (SELECT t FROM v) RETURNING seq, task_id, app, caller, asserted, door, accepted_at, targets`,
		"t BIGINT")
	discardTasks = insert("garbage", "task_seq", " ON CONFLICT (task_seq) DO NOTHING")
	dropKeys     = with(`DELETE FROM idempotency WHERE task_seq IN (SELECT t FROM v)`, "t BIGINT")
)

// Prune implements control.Store. A task vanishes for readers at once; its attempts follow in steps, also those
// that a crash left behind.
func (s *Store) Prune(ctx context.Context, before time.Time, limit int) (n int, err error) {
	defer s.timed("prune", &err)()
	var old []int64
	rows, err := s.read.db.QueryContext(ctx, selectFinished, millis(before), max(0, min(limit, pruneTasks)))
	if err := s.readError("finished tasks", scanAll(rows, err,
		func(r *sql.Rows) error { return scanSeq(r, &old) })); err != nil {
		return 0, err
	}

	if len(old) > 0 {
		discard := func(ctx context.Context, c *conn) (err error) {
			n, err = s.discardTask(ctx, c, old)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of tasks", rows: len(old), run: discard}); err != nil {
			return 0, err
		}
	}

	if err := s.scrapAll(ctx, &scrapsOfTasks); err != nil {
		return n, err
	}

	return n, s.sweep(ctx)
}

func scanSeq(r *sql.Rows, to *[]int64) error {
	*to = append(*to, 0)
	return r.Scan(&(*to)[len(*to)-1])
}

// discardTask takes tasks out of sight, with their idempotency keys; what came of them stays in the audit. It
// returns how many: another server may have been faster.
func (s *Store) discardTask(ctx context.Context, c *conn, old []int64) (int, error) {
	var gone []gozzard.Task
	err := c.putEach(ctx, removeTasks, len(old), func(i int, to []any) []any { return append(to, old[i]) },
		func(r *sql.Rows) error {
			gone = append(gone, gozzard.Task{})
			return r.Scan(taskInto(&gone[len(gone)-1])...)
		})

	if err != nil {
		return 0, err
	}
	if err := auditVerdicts(ctx, c, gone, s.o.Now()); err != nil {
		return 0, fmt.Errorf("verdicts: %w", err)
	}

	one := func(i int, to []any) []any { return append(to, int64(gone[i].Seq)) }
	if err := c.put(ctx, discardTasks, len(gone), one); err != nil {
		return 0, err
	}

	return len(gone), c.put(ctx, dropKeys, len(gone), one)
}

// scraps are the rows of what is gone for readers.
type scraps struct {
	next string   // finds one
	rows []string // remove at most so many rows of it, each of a table
	done string   // forgets it
}

var scrapsOfTasks = scraps{
	next: `SELECT task_seq FROM garbage ORDER BY task_seq LIMIT 1`,
	rows: []string{
		`DELETE FROM attempts WHERE task_seq = $1 AND idx IN (SELECT idx FROM attempts WHERE task_seq = $1 ORDER BY idx LIMIT $2)`,
		`DELETE FROM items WHERE task_seq = $1 AND item IN (SELECT item FROM items WHERE task_seq = $1 ORDER BY item LIMIT $2)`,
	},
	done: `DELETE FROM garbage WHERE task_seq = $1`,
}

// scrapAll removes scraps in steps until none are left.
func (s *Store) scrapAll(ctx context.Context, of *scraps) error {
	for more := true; more; {
		scrap := func(ctx context.Context, c *conn) (err error) {
			more, err = scrapSome(ctx, c, of)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of what is gone", rows: pruneRows, run: scrap}); err != nil {
			return err
		}
	}
	return nil
}

func scrapSome(ctx context.Context, c *conn, of *scraps) (more bool, err error) {
	for left := int64(pruneRows); left > 0; {
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

// sweep looks at some definitions, where the last call ended, and removes those that nothing names any more; it
// goes on while many of them go. A definition is named by tasks up to its last_task, and by processes.
func (s *Store) sweep(ctx context.Context) error {
	for {
		seen, gone := int64(0), int64(0)
		run := func(ctx context.Context, c *conn) (err error) {
			seen, gone, err = s.sweepSome(ctx, c)
			return err
		}
		if err := s.w.submit(ctx, &job{op: "the removal of definitions", rows: sweepSpecs, run: run}); err != nil {
			return err
		}
		if gone*10 < seen || seen < sweepSpecs {
			return nil
		}
	}
}

func (s *Store) sweepSome(ctx context.Context, c *conn) (seen, gone int64, err error) {
	oldest := sql.NullInt64{}
	if _, err := c.one(ctx, `SELECT MIN(seq) FROM tasks`, nil, &oldest); err != nil {
		return 0, 0, err
	}
	if !oldest.Valid {
		oldest.Int64 = math.MaxInt64
	}

	last := s.swept
	err = c.each(ctx, `SELECT hash FROM specs WHERE hash > $1 ORDER BY hash LIMIT $2`, []any{s.swept, sweepSpecs},
		func(r *sql.Rows) error {
			seen++
			last = nil
			return r.Scan(&last)
		})

	if err != nil {
		return 0, 0, err
	}
	if seen > 0 {
		gone, err = c.change(ctx, `DELETE FROM specs WHERE hash > $1 AND hash <= $2 AND last_task < $3
			AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.spec_hash = specs.hash)`, s.swept, last, oldest.Int64)
	}

	if s.swept = last; seen < sweepSpecs {
		s.swept = []byte{}
	}

	return seen, gone, err
}
