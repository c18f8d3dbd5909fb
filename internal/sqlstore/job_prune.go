package sqlstore

import (
	"context"
	"database/sql"
	"time"
)

const selectEndedJobs = `SELECT id, ended FROM jobs
	WHERE ended > 0 AND ended < $1 AND state IN ('succeeded', 'failed') ORDER BY ended, id LIMIT $2`

var (
	// The end of the job is part of the condition: a job that was retried meanwhile has another end, or none.
	deleteJobRows = withRows(`DELETE FROM jobs WHERE (id, ended) IN (SELECT j, e FROM v) RETURNING id`, "j BIGINT",
		"e BIGINT")
	insertJobGarbage = insertRows("job_garbage", "job", " ON CONFLICT (job) DO NOTHING")

	jobLeftovers = leftovers{
		next: `SELECT job FROM job_garbage ORDER BY job LIMIT 1`,
		rows: []string{
			`DELETE FROM job_tasks WHERE job = $1
				AND id IN (SELECT id FROM job_tasks WHERE job = $1 ORDER BY id LIMIT $2)`,
			`DELETE FROM job_details WHERE job = $1
				AND id IN (SELECT id FROM job_details WHERE job = $1 ORDER BY id LIMIT $2)`,
			`DELETE FROM job_results WHERE job = $1
				AND id IN (SELECT id FROM job_results WHERE job = $1 ORDER BY id LIMIT $2)`,
			`DELETE FROM job_specs WHERE job = $1
				AND hash IN (SELECT hash FROM job_specs WHERE job = $1 ORDER BY hash LIMIT $2)`,
		},
		done: `DELETE FROM job_garbage WHERE job = $1`,
	}
)

// PruneJobs implements waves.Store. A job disappears for readers at once. Its tasks are removed afterwards, in steps;
// those that an earlier, interrupted call left behind as well.
func (s *Store) PruneJobs(ctx context.Context, before time.Time, limit int) (n int, err error) {
	defer s.timed("prune_jobs", &err)()

	// Find jobs that ended long ago.
	type end struct{ job, at int64 }
	var old []end
	err = s.read.each(ctx, selectEndedJobs, []any{millis(before), max(0, min(limit, maxPruneTasks))},
		func(r *sql.Rows) error {
			var e end
			err := r.Scan(&e.job, &e.at)
			old = append(old, e)
			return err
		})
	if err := s.readError("ended jobs", err); err != nil {
		return 0, err
	}

	// Hide them from readers.
	if len(old) > 0 {
		remove := func(ctx context.Context, c *conn) error {
			var gone []int64
			err := c.queryRows(ctx, deleteJobRows, len(old),
				func(i int, to []any) []any { return append(to, old[i].job, old[i].at) },
				func(r *sql.Rows) error { return scanSeq(r, &gone) })
			if err != nil {
				return err
			}
			n = len(gone)
			return c.execRows(ctx, insertJobGarbage, len(gone),
				func(i int, to []any) []any { return append(to, gone[i]) })
		}
		if err := s.w.submit(ctx, &job{op: "the removal of jobs", rows: len(old), run: remove}); err != nil {
			return 0, err
		}
	}

	// Remove their rows.
	return n, s.removeLeftovers(ctx, &jobLeftovers)
}
