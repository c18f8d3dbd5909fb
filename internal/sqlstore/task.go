package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/gozzard/gozzard"
)

const taskColumns = `t.seq, t.task_id, t.app, t.caller, t.asserted, t.door, t.accepted_at, t.targets`

func taskInto(t *gozzard.Task) []any {
	return []any{&t.Seq, &t.ID, &t.Caller.App, &t.Caller.User, &t.Caller.Asserted, &t.Door, (*stamp)(&t.At), &t.Targets}
}

// Task implements control.Store.
func (s *Store) Task(ctx context.Context, seq gozzard.TaskSeq) (t gozzard.Task, err error) {
	defer s.timed("task", &err)()
	err = s.read.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks t WHERE t.seq = $1`, int64(seq)).Scan(taskInto(&t)...)
	if errors.Is(err, sql.ErrNoRows) {
		return t, noTask(seq)
	}
	return t, s.readError("a task", err)
}

func noTask(seq gozzard.TaskSeq) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no task %d; results are kept for a limited time", seq)
}

// Attempts implements control.Store. Labels and definitions of attempts of one item are the same map and slice: they are for reading.
func (s *Store) Attempts(ctx context.Context, seq gozzard.TaskSeq) (list []gozzard.Attempt, err error) {
	defer s.timed("attempts", &err)()
	err = s.view(ctx, "attempts", func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, `SELECT seq FROM tasks WHERE seq = $1`, int64(seq)).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return noTask(seq)
		}
		if err != nil {
			return err
		}
		list, err = readAttempts(ctx, tx, `task_seq = $1`, int64(seq))
		return err
	})
	return list, err
}

// Open implements control.Store. Labels and definitions are shared as in Attempts.
func (s *Store) Open(ctx context.Context, agent gozzard.AgentID) (list []gozzard.Attempt, err error) {
	defer s.timed("open", &err)()
	err = s.view(ctx, "open attempts", func(tx *sql.Tx) (err error) {
		if agent == "" {
			list, err = readAttempts(ctx, tx, `state < 4`)
		} else {
			list, err = readAttempts(ctx, tx, `agent_id = $1 AND state < 4`, text(string(agent)))
		}
		return err
	})
	return list, err
}

// readAttempts reads the attempts of a condition in the order of their places, and what they have in common once.
func readAttempts(ctx context.Context, tx *sql.Tx, where string, args ...any) ([]gozzard.Attempt, error) {
	specs, err := readSpecs(ctx, tx, where, args)
	if err != nil {
		return nil, err
	}
	items, err := readItems(ctx, tx, specs, where, args)
	if err != nil {
		return nil, err
	}
	var list []gozzard.Attempt
	rows, err := tx.QueryContext(ctx, `SELECT task_seq, idx, item, op_id, agent_id, cloud, ip, result_key, state, session, outcome, deadline, expires
		FROM attempts WHERE `+where, args...)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var a gozzard.Attempt
		var at place
		var op, ip, outcome string
		var cloud, session int64
		if err := r.Scan(&a.Ref.Task, &a.Ref.Index, &at.item, &op, &a.Agent, &cloud, &ip, &a.ResultKey, &a.State, &session, &outcome,
			(*stamp)(&a.Deadline), (*stamp)(&a.Expires)); err != nil {
			return err
		}
		at.task = a.Ref.Task
		it := items[at]
		a.Key, a.Action, a.Labels, a.Spec, a.Session = it.Key, it.Action, it.Labels, it.Spec, uint64(session)
		var err error
		if a.Op, err = gozzard.ParseOpID(op); err != nil {
			return err
		}
		if a.Addr, err = hostAddr(cloud, ip); err != nil {
			return err
		}
		if a.Outcome, err = fromOutcome(outcome); err != nil {
			return err
		}
		list = append(list, a)
		return nil
	})
	slices.SortFunc(list, func(a, b gozzard.Attempt) int {
		if a.Ref.Task != b.Ref.Task {
			return int(a.Ref.Task - b.Ref.Task)
		}
		return int(a.Ref.Index - b.Ref.Index)
	})
	return list, err
}

// place names an item.
type place struct {
	task gozzard.TaskSeq
	item int32
}

func readItems(ctx context.Context, tx *sql.Tx, specs map[string][]byte, where string, args []any) (map[place]gozzard.Attempt, error) {
	items := map[place]gozzard.Attempt{}
	rows, err := tx.QueryContext(ctx, `SELECT task_seq, item, namespace, name, action, labels, spec_hash FROM items
		WHERE (task_seq, item) IN (SELECT task_seq, item FROM attempts WHERE `+where+`)`, args...)
	return items, scanAll(rows, err, func(r *sql.Rows) error {
		var at place
		var it gozzard.Attempt
		var labels string
		var hash []byte
		err := r.Scan(&at.task, &at.item, &it.Key.Namespace, &it.Key.Name, &it.Action, &labels, &hash)
		if err != nil {
			return err
		}
		it.Spec = specs[string(hash)]
		if it.Labels, err = fromLabels(labels); err != nil {
			return err
		}
		items[at] = it
		return nil
	})
}

func readSpecs(ctx context.Context, tx *sql.Tx, where string, args []any) (map[string][]byte, error) {
	specs := map[string][]byte{}
	rows, err := tx.QueryContext(ctx, `SELECT hash, body FROM specs WHERE hash IN (SELECT spec_hash FROM items
		WHERE (task_seq, item) IN (SELECT task_seq, item FROM attempts WHERE `+where+`))`, args...)
	return specs, scanAll(rows, err, func(r *sql.Rows) error {
		var hash, body []byte
		if err := r.Scan(&hash, &body); err != nil {
			return err
		}
		specs[string(hash)] = body
		return nil
	})
}
