package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

var (
	insertJobTasks = insertRows("job_tasks", `job, id, state, set_id, module_id, process, name, local_id, inst_id,
		namespace, key_name, agent_id, cloud, ip, grp,
		wave, priority, round, task_id, reason, code, message, started, ended`, "")

	insertJobDetails = insertRows("job_details", "job, id, labels, spec_hash, info", "")

	insertJobSpecs = insertRows("job_specs", "job, hash, body", " ON CONFLICT (job, hash) DO NOTHING")

	upsertJobResults = insertRows("job_results", "job, id, body",
		" ON CONFLICT (job, id) DO UPDATE SET body = excluded.body")

	updateJobTasks = withRows(`UPDATE job_tasks
		SET state = v.s, reason = v.r, code = v.c, message = v.m, round = v.n, task_id = v.t, started = v.b, ended = v.e
		FROM v WHERE job_tasks.job = v.j AND job_tasks.id = v.i AND job_tasks.round <= v.n`,
		"j BIGINT", "i BIGINT", "s TEXT", "r TEXT", "c TEXT", "m TEXT", "n INTEGER", "t TEXT", "b BIGINT", "e BIGINT")
)

// CreateJob implements waves.Store.
func (s *Store) CreateJob(ctx context.Context, j *record.Job, tasks []record.JobTask) (err error) {
	defer s.timed("create_job", &err)()

	// Encode the tasks.
	c := &jobCreation{audit: withOrigin(ctx, gozzard.AuditRow{At: j.Started, Caller: j.Caller, Targets: len(tasks)}), j: j,
		tasks: tasks, labels: make([]string, len(tasks)), refs: make([]specRef, len(tasks))}
	labels := labelCache{}
	for i := range tasks {
		c.refs[i] = c.specs.add(tasks[i].Spec)
		if c.labels[i], err = labels.text(tasks[i].Labels); err != nil {
			return fmt.Errorf("cannot encode the labels of %s: %w", tasks[i].Key, err)
		}
	}

	if err := c.audit.SetText(strings.TrimSpace(j.Expression + "\n" + string(j.Request))); err != nil {
		return err
	}

	rows := len(tasks) + len(c.specs.refs) + 1
	if err := s.w.submit(ctx, &job{op: "a job", rows: rows, grows: true, run: c.run}); err != nil {
		return err
	}

	// Fill in the numbers.
	j.ID = c.id
	for i := range tasks {
		tasks[i].ID, tasks[i].Job, tasks[i].Biz = c.first+int64(i), c.id, j.Biz
	}

	return nil
}

// jobCreation is a new job on its way into the record. The caller encodes it before the transaction.
type jobCreation struct {
	audit  gozzard.AuditRow
	j      *record.Job
	tasks  []record.JobTask
	labels []string  // the encoded labels of each task
	refs   []specRef // the definition of each task
	specs  specSet

	id    int64 // of the job
	first int64 // id of the first task; the others follow
}

func (n *jobCreation) run(ctx context.Context, c *conn) error {
	// Give the job and its tasks their numbers.
	var err error
	if n.id, err = nextNumbers(ctx, c, "job", 1); err != nil {
		return err
	}

	last, err := nextNumbers(ctx, c, "job_task", len(n.tasks))
	if err != nil {
		return err
	}

	n.first = last - int64(len(n.tasks)) + 1

	// Record them.
	if err := n.putJob(ctx, c); err != nil {
		return err
	}
	audit := n.audit
	audit.Act = fmt.Sprintf("job:%s job %d", cmp.Or(string(n.j.Work), n.j.Action.String()), n.id)
	if err := addAudit(ctx, c, audit); err != nil {
		return err
	}

	err = c.execRows(ctx, insertJobSpecs, len(n.specs.refs), func(i int, to []any) []any {
		return append(to, n.id, n.specs.refs[i].hash[:], n.specs.bodies[i])
	})
	if err != nil {
		return fmt.Errorf("definitions: %w", err)
	}

	err = c.execRows(ctx, insertJobTasks, len(n.tasks), func(i int, to []any) []any {
		t := &n.tasks[i]
		return append(to, n.id, n.first+int64(i), string(t.State),
			t.Set, t.Module, t.Process, text(t.Name), t.Local, t.Inst,
			text(t.Key.Namespace), text(t.Key.Name), text(string(t.Agent)), t.Addr.Cloud, ipText(t.Addr.IP),
			text(t.Group), t.Wave, t.Priority, t.Round, taskname.Of(t.Task),
			string(t.Reason), text(string(t.Code)), text(t.Message), millis(t.Started), millis(t.Ended))
	})
	if err != nil {
		return fmt.Errorf("tasks: %w", err)
	}

	return c.execRows(ctx, insertJobDetails, len(n.tasks), func(i int, to []any) []any {
		return append(to, n.id, n.first+int64(i), n.labels[i], n.refs[i].value(), n.tasks[i].Info)
	})
}

// nextNumbers gives out the next n numbers of a counter and returns the last of them.
func nextNumbers(ctx context.Context, c *conn, name string, n int) (last int64, err error) {
	_, err = c.one(ctx, `UPDATE counters SET value = value + $1 WHERE name = $2 RETURNING value`, []any{n, name}, &last)
	return last, err
}

func (n *jobCreation) putJob(ctx context.Context, c *conn) error {
	j := n.j
	choice, err := json.Marshal(j.Choice)
	if err != nil {
		return fmt.Errorf("cannot encode the choice of a job: %w", err)
	}
	_, err = c.change(ctx, `INSERT INTO jobs (id, biz, action, app, caller, asserted, expression, granularity,
		state, reason, message, started, ended, request, work, choice, trace)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		n.id, j.Biz, int64(j.Action), text(j.Caller.App), text(j.Caller.User), j.Caller.Asserted,
		text(j.Expression), text(string(j.Granularity)), string(j.State), string(j.Reason), text(j.Message),
		millis(j.Started), millis(j.Ended), j.Request, string(j.Work), string(choice), text(string(j.Trace)))
	if err != nil {
		return err
	}
	_, err = c.change(ctx, `INSERT INTO job_businesses (biz) VALUES ($1) ON CONFLICT (biz) DO NOTHING`, j.Biz)
	return err
}

// SaveTasks implements waves.Store.
func (s *Store) SaveTasks(ctx context.Context, j *record.Job, tasks []record.JobTask) (err error) {
	defer s.timed("save_tasks", &err)()
	return s.w.submit(ctx, &job{op: "the state of a job", rows: len(tasks) + 1,
		run: func(ctx context.Context, c *conn) error {
			if j != nil {
				if _, err := updateJob(ctx, c, j, ``); err != nil {
					return err
				}
			}
			return updateTasks(ctx, c, tasks)
		}})
}

// Reopen implements waves.Store.
func (s *Store) Reopen(ctx context.Context, j *record.Job, tasks []record.JobTask, audit gozzard.AuditRow) (err error) {
	defer s.timed("reopen", &err)()
	audit = withOrigin(ctx, audit)

	return s.w.submit(ctx, &job{op: "the retry of a job", rows: len(tasks) + 1, grows: true,
		run: func(ctx context.Context, c *conn) error {
			// Reject the retry of a job that has not ended.
			n, err := updateJob(ctx, c, j, ` AND state IN ('succeeded', 'failed')`)
			if err != nil {
				return err
			}
			if n == 0 {
				return gozzard.Errorf(gozzard.ErrConflict, "job %d has not ended, or was removed", j.ID)
			}

			if err := addAudit(ctx, c, audit); err != nil {
				return err
			}

			return updateTasks(ctx, c, tasks)
		}})
}

// StopJob implements waves.Store.
func (s *Store) StopJob(ctx context.Context, biz int, id int64, round int, audit gozzard.AuditRow) (err error) {
	defer s.timed("stop_job", &err)()
	audit = withOrigin(ctx, audit)

	return s.w.submit(ctx, &job{op: "the stop of a job", rows: 1, grows: true,
		run: func(ctx context.Context, c *conn) error {
			// Read which round was stopped before.
			var text string
			found, err := c.one(ctx, `SELECT choice FROM jobs WHERE id = $1 AND biz = $2 AND state NOT IN ('succeeded', 'failed')`,
				[]any{id, biz}, &text)
			if err != nil {
				return err
			}
			if !found {
				return gozzard.Errorf(gozzard.ErrConflict, "job %d has ended, or was removed: there is nothing to stop", id)
			}
			var choice record.ConfigChoice
			if err := json.Unmarshal([]byte(text), &choice); err != nil {
				return fmt.Errorf("the choice of job %d: %w", id, err)
			}
			if choice.Stopped != nil && *choice.Stopped == round {
				return nil
			}

			choice.Stopped = &round
			b, err := json.Marshal(choice)
			if err != nil {
				return fmt.Errorf("cannot encode the choice of a job: %w", err)
			}
			if _, err := c.change(ctx, `UPDATE jobs SET choice = $2 WHERE id = $1`, id, string(b)); err != nil {
				return err
			}
			return addAudit(ctx, c, audit)
		}})
}

// updateJob writes the state of a job and returns how many rows it changed. and is a further condition.
func updateJob(ctx context.Context, c *conn, j *record.Job, and string) (int64, error) {
	return c.change(ctx,
		`UPDATE jobs SET state = $2, reason = $3, message = $4, started = $5, ended = $6 WHERE id = $1`+and,
		j.ID, string(j.State), string(j.Reason), text(j.Message), millis(j.Started), millis(j.Ended))
}

func updateTasks(ctx context.Context, c *conn, tasks []record.JobTask) error {
	var made []*record.JobTask
	for i := range tasks {
		if tasks[i].Result != nil {
			made = append(made, &tasks[i])
		}
	}
	err := c.execRows(ctx, upsertJobResults, len(made), func(i int, to []any) []any {
		return append(to, made[i].Job, made[i].ID, made[i].Result)
	})
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return c.execRows(ctx, updateJobTasks, len(tasks), func(i int, to []any) []any {
		t := &tasks[i]
		return append(to, t.Job, t.ID, string(t.State), string(t.Reason), text(string(t.Code)), text(t.Message),
			t.Round, taskname.Of(t.Task), millis(t.Started), millis(t.Ended))
	})
}
