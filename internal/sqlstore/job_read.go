package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const jobColumns = `id, biz, action, app, caller, asserted, expression, granularity, state, reason, message,
	started, ended, request, work, choice, trace`

func scanJob(r *sql.Rows, to *[]record.Job) error {
	var j record.Job
	var action int64
	var choice string
	err := r.Scan(&j.ID, &j.Biz, &action, &j.Caller.App, &j.Caller.User, &j.Caller.Asserted, &j.Expression,
		&j.Granularity, &j.State, &j.Reason, &j.Message, (*stamp)(&j.Started), (*stamp)(&j.Ended), &j.Request,
		&j.Work, &choice, &j.Trace)
	if err != nil {
		return err
	}
	if choice != "" {
		if err := json.Unmarshal([]byte(choice), &j.Choice); err != nil {
			return fmt.Errorf("the choice of job %d: %w", j.ID, err)
		}
	}
	j.Action = gozzard.Action(action)
	*to = append(*to, j)
	return nil
}

// Job implements waves.Store.
func (s *Store) Job(ctx context.Context, biz int, id int64) (j record.Job, err error) {
	defer s.timed("job", &err)()
	var list []record.Job
	err = s.read.each(ctx, `SELECT `+jobColumns+` FROM jobs WHERE id = $1 AND biz = $2`, []any{id, biz},
		func(r *sql.Rows) error { return scanJob(r, &list) })
	if err != nil {
		return j, s.readError("a job", err)
	}
	if len(list) == 0 {
		return j, gozzard.Errorf(gozzard.ErrNotFound, "business %d has no job %d; jobs are kept for a limited time",
			biz, id)
	}
	return list[0], nil
}

// OpenJobs implements waves.Store.
func (s *Store) OpenJobs(ctx context.Context) (list []record.Job, err error) {
	defer s.timed("open_jobs", &err)()
	err = s.read.each(ctx, selectOpenJobs, nil, func(r *sql.Rows) error { return scanJob(r, &list) })
	return list, s.readError("open jobs", err)
}

const selectOpenJobs = `SELECT ` + jobColumns + ` FROM jobs WHERE state IN ('pending', 'running') ORDER BY id`

// HasJobs implements waves.Store.
func (s *Store) HasJobs(ctx context.Context, biz int) (has bool, err error) {
	defer s.timed("has_jobs", &err)()
	err = s.read.each(ctx, `SELECT biz FROM job_businesses WHERE biz = $1`, []any{biz}, func(*sql.Rows) error {
		has = true
		return nil
	})
	return has, s.readError("whether a business has jobs", err)
}

// where builds the condition of a filter. A list is one JSON argument: so it may be longer than a statement may have
// arguments, and there are few different texts. An empty list matches everything.
type where struct {
	text strings.Builder
	args []any
	err  error // of the first list that could not be encoded
}

// arg adds an argument and returns its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

func (w *where) and(condition string) {
	if w.text.Len() > 0 {
		w.text.WriteString(" AND ")
	}
	w.text.WriteString(condition)
}

// in adds the condition that a column is in a list of n values. from is jsonNumbers or jsonTexts of the dialect.
func (w *where) in(column string, from func(string) string, n int, list any) {
	if n == 0 {
		return
	}
	b, err := json.Marshal(list)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.and(column + " IN (" + from("CAST("+w.arg(string(b))+" AS TEXT)") + ")")
}

// limitOf is the LIMIT of a query for at most n rows; a negative n means all.
func limitOf(n int) int64 {
	if n < 0 {
		return math.MaxInt64
	}
	return int64(n)
}

// Jobs implements waves.Store.
func (s *Store) Jobs(ctx context.Context, f record.JobFilter) (total int, jobs []record.Job, err error) {
	defer s.timed("jobs", &err)()
	w := s.jobsWhere(&f)
	if w.err != nil {
		return 0, nil, fmt.Errorf("cannot encode a filter of jobs: %w", w.err)
	}

	err = s.read.snapshot(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM jobs WHERE `+w.text.String(),
			w.args...).Scan(&total); err != nil {
			return err
		}
		args := append(w.args[:len(w.args):len(w.args)], limitOf(f.Limit), max(f.Start, 0))
		rows, err := tx.QueryContext(ctx, fmt.Sprintf(`SELECT `+jobColumns+
			` FROM jobs WHERE %s ORDER BY id DESC LIMIT $%d OFFSET $%d`,
			w.text.String(), len(args)-1, len(args)), args...)
		return scanAll(rows, err, func(r *sql.Rows) error { return scanJob(r, &jobs) })
	})
	if err != nil {
		return 0, nil, s.readError("jobs", err)
	}

	return total, jobs, nil
}

// CountJobs implements waves.Store.
func (s *Store) CountJobs(ctx context.Context, f record.JobFilter) (list []record.JobCount, err error) {
	defer s.timed("count_jobs", &err)()
	w := s.jobsWhere(&f)
	if w.err != nil {
		return nil, fmt.Errorf("cannot encode a filter of jobs: %w", w.err)
	}
	const quarter = int64(15 * time.Minute / time.Millisecond)
	columns := `action, work, app, caller, state, started / ` + strconv.FormatInt(quarter, 10)
	err = s.read.each(ctx, `SELECT `+columns+`, COUNT(*) FROM jobs WHERE `+w.text.String()+
		` GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 6, 1, 2, 3, 4, 5`, w.args, func(r *sql.Rows) error {
		c := record.JobCount{Biz: f.Biz}
		var action, at int64
		if err := r.Scan(&action, &c.Work, &c.App, &c.User, &c.State, &at, &c.Count); err != nil {
			return err
		}
		c.Action, c.At = gozzard.Action(action), fromMillis(at*quarter)
		list = append(list, c)
		return nil
	})
	return list, s.readError("the number of jobs", err)
}

func (s *Store) jobsWhere(f *record.JobFilter) *where {
	w := &where{}
	w.and("biz = " + w.arg(f.Biz))
	w.in("id", s.d.jsonNumbers, len(f.IDs), f.IDs)

	s.actionsWhere(w, f.Actions)
	w.in("app", s.d.jsonTexts, len(f.Apps), texts(f.Apps))
	w.in("caller", s.d.jsonTexts, len(f.Users), texts(f.Users))
	w.in("state", s.d.jsonTexts, len(f.States), texts(f.States))

	if f.Configs != nil {
		if *f.Configs {
			w.and("work <> ''")
		} else {
			w.and("work = ''")
		}
	}
	if f.Template != 0 { // a choice without templates does not have the key, and jobs on processes have no choice
		w.and("(choice NOT LIKE '{\"templates\":%' OR " + w.arg(f.Template) + " IN (" +
			s.d.jsonNumbers("CASE WHEN choice LIKE '{\"templates\":%' THEN "+s.d.named+" END") + "))")
	}
	if !f.From.IsZero() {
		w.and("started >= " + w.arg(millis(f.From)))
	}
	if !f.Until.IsZero() {
		w.and("started <= " + w.arg(millis(f.Until)))
	}

	return w
}

// actionsWhere adds the condition that a job does one of some actions, or one of some work on configuration files.
func (s *Store) actionsWhere(w *where, words []string) {
	if len(words) == 0 {
		return
	}
	actions, work := []int{int(gozzard.ActionNone)}, []string{"none"} // no job has these
	for _, word := range words {
		if a, err := gozzard.ParseAction(word); err == nil {
			actions = append(actions, int(a))
		} else {
			work = append(work, word)
		}
	}
	either := &where{args: w.args}
	either.in("action", s.d.jsonNumbers, len(actions), actions)
	first := either.text.String()
	either.text.Reset()
	either.in("work", s.d.jsonTexts, len(work), texts(work))
	w.args = either.args
	w.and("(" + first + " OR " + either.text.String() + ")")
	if w.err == nil {
		w.err = either.err
	}
}

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = text(string(list[i]))
	}
	return out
}

const taskOfJobColumns = `t.id, t.state, t.set_id, t.module_id, t.process, t.name, t.local_id, t.inst_id,
	t.namespace, t.key_name, t.agent_id, t.cloud, t.ip,
	t.grp, t.wave, t.priority, t.round, t.task_id, t.reason, t.code, t.message, t.started, t.ended`

// Tasks implements waves.Store.
func (s *Store) Tasks(ctx context.Context, f record.JobTaskFilter) (page record.JobTaskPage, err error) {
	defer s.timed("job_tasks", &err)()
	err = s.read.snapshot(ctx, func(tx *sql.Tx) (err error) {
		page, err = s.readTasks(ctx, tx, &f)
		return err
	})
	if err != nil {
		return record.JobTaskPage{}, s.readError("tasks of a job", err)
	}
	return page, nil
}

func (s *Store) readTasks(ctx context.Context, tx *sql.Tx,
	f *record.JobTaskFilter) (page record.JobTaskPage, err error) {
	page.Counts = map[record.JobState]int{}

	// Find the job. Of a job that was removed some tasks may be left, which readers must not see.
	biz, found := 0, false
	rows, err := tx.QueryContext(ctx, `SELECT biz FROM jobs WHERE id = $1`, f.Job)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		found = true
		return r.Scan(&biz)
	})
	if err != nil || !found {
		return page, err
	}

	// Count its tasks by state.
	rows, err = tx.QueryContext(ctx, countTasks, f.Job)
	all := 0
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var state record.JobState
		var n int
		err := r.Scan(&state, &n)
		page.Counts[state], all = n, all+n
		return err
	})
	if err != nil {
		return page, err
	}

	// Count those that match the filter, if it has more conditions than the job.
	w := s.tasksWhere(f)
	if w.err != nil {
		return page, w.err
	}

	if page.Total = all; len(w.args) > 1 {
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM job_tasks t WHERE `+w.text.String(),
			w.args...).Scan(&page.Total); err != nil {
			return page, err
		}
	}

	// Read the page.
	page.Tasks, err = readTaskRows(ctx, tx, f, w, biz)
	return page, err
}

const (
	fromTasks        = ` FROM job_tasks t JOIN job_details d ON d.job = t.job AND d.id = t.id`
	fromDefinedTasks = fromTasks + ` LEFT JOIN job_specs s ON s.job = d.job AND s.hash = d.spec_hash`
)

const countTasks = `SELECT state, COUNT(*) FROM job_tasks WHERE job = $1 GROUP BY state`

func (s *Store) tasksWhere(f *record.JobTaskFilter) *where {
	w := &where{}
	w.and("t.job = " + w.arg(f.Job))
	w.in("t.id", s.d.jsonNumbers, len(f.IDs), f.IDs)
	w.in("t.set_id", s.d.jsonNumbers, len(f.Sets), f.Sets)
	w.in("t.module_id", s.d.jsonNumbers, len(f.Modules), f.Modules)
	w.in("t.process", s.d.jsonNumbers, len(f.Processes), f.Processes)
	w.in("t.name", s.d.jsonTexts, len(f.Names), texts(f.Names))
	w.in("t.state", s.d.jsonTexts, len(f.States), texts(f.States))
	return w
}

// readTaskRows reads the tasks of a page, with their definitions or with the information for display.
func readTaskRows(ctx context.Context, tx *sql.Tx,
	f *record.JobTaskFilter, w *where, biz int) (list []record.JobTask, err error) {
	if f.Limit == 0 {
		return nil, nil
	}

	// Ask.
	columns, from := taskOfJobColumns+`, d.info`, fromTasks

	if f.Definitions {
		columns, from = taskOfJobColumns+`, d.labels, s.body`, fromDefinedTasks
	}
	if f.Results {
		columns += `, x.body`
		from += ` LEFT JOIN job_results x ON x.job = t.job AND x.id = t.id`
	}

	args := append(w.args[:len(w.args):len(w.args)], limitOf(f.Limit), max(f.Start, 0))
	rows, err := tx.QueryContext(ctx, fmt.Sprintf(`SELECT %s%s WHERE %s ORDER BY t.id LIMIT $%d OFFSET $%d`,
		columns, from, w.text.String(), len(args)-1, len(args)), args...)

	// Read the answer.
	var known definitions
	return list, scanAll(rows, err, func(r *sql.Rows) error {
		t := record.JobTask{Job: f.Job, Biz: biz}
		var ip, labels string
		into := []any{&t.ID, &t.State, &t.Set, &t.Module, &t.Process, &t.Name, &t.Local, &t.Inst,
			&t.Key.Namespace, &t.Key.Name, &t.Agent, &t.Addr.Cloud, &ip,
			&t.Group, &t.Wave, &t.Priority, &t.Round, (*taskID)(&t.Task), &t.Reason, &t.Code, &t.Message,
			(*stamp)(&t.Started), (*stamp)(&t.Ended)}

		if f.Definitions {
			into = append(into, &labels, &t.Spec)
		} else {
			into = append(into, &t.Info)
		}
		if f.Results {
			into = append(into, &t.Result)
		}

		err := r.Scan(into...)
		if err != nil {
			return err
		}
		if t.Addr.IP, err = fromIP(ip); err != nil {
			return err
		}
		if t.Labels, err = fromLabels(labels); err != nil {
			return err
		}

		t.Spec = known.share(t.Spec)
		list = append(list, t)
		return nil
	})
}

// definitions saves memory: it makes equal definitions share their bytes, because thousands of tasks have few different
// ones.
type definitions map[string][]byte

// share returns the bytes of the first definition that is equal to body.
func (d *definitions) share(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	if *d == nil {
		*d = definitions{}
	}
	if first, ok := (*d)[string(body)]; ok {
		return first
	}
	(*d)[string(body)] = body
	return body
}
