package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const taskColumns = `t.seq, t.task_id, t.app, t.caller, t.asserted, t.door, t.accepted_at, t.targets, t.trace`

// taskInto returns the variables that a row of taskColumns is read into.
func taskInto(t *gozzard.Task) []any {
	return []any{&t.Seq, (*taskID)(&t.ID), &t.Caller.App, &t.Caller.User, &t.Caller.Asserted, &t.Door, (*stamp)(&t.At), &t.Targets,
		&t.Trace}
}

// Task implements control.Store.
func (s *Store) Task(ctx context.Context, seq gozzard.TaskSeq) (t gozzard.Task, err error) {
	defer s.timed("task", &err)()
	found := false
	err = s.read.each(ctx, `SELECT `+taskColumns+` FROM tasks t WHERE t.seq = $1`, []any{int64(seq)},
		func(r *sql.Rows) error {
			found = true
			return r.Scan(taskInto(&t)...)
		})
	if err == nil && !found {
		return t, noTask(seq)
	}
	return t, s.readError("a task", err)
}

// OpenTasksOf lists the tasks of a user that have attempts without a result, at most limit.
func (s *Store) OpenTasksOf(ctx context.Context, user string, limit int) (list []gozzard.TaskID, err error) {
	defer s.timed("open_tasks", &err)()
	err = s.read.each(ctx, `SELECT t.task_id FROM tasks t WHERE t.caller = $1
		AND t.seq IN (SELECT task_seq FROM attempts WHERE state < 4) ORDER BY t.seq LIMIT $2`, []any{text(user), limit},
		func(r *sql.Rows) error {
			var id gozzard.TaskID
			if err := r.Scan((*taskID)(&id)); err != nil {
				return err
			}
			list = append(list, id)
			return nil
		})
	return list, s.readError("open tasks", err)
}

func noTask(seq gozzard.TaskSeq) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no task %d; results are kept for a limited time", seq)
}

const selectAttempts = `SELECT task_seq, idx, item, op_id, agent_id, cloud, ip, result_key, state, session,
	outcome, deadline, expires FROM attempts WHERE `

// Conditions for selectAttempts. ofTask checks in the same statement that the task exists: while a removed task is
// being pruned, some of its attempts are left. Without the casts SQLite would look at the argument to choose a plan,
// so it would plan again for every argument, and that takes longer than the read.
const (
	ofTask = `task_seq = CAST($1 AS BIGINT) AND EXISTS (SELECT 1 FROM tasks WHERE seq = CAST($1 AS BIGINT))`
	ofAll  = `state < 4`
)

// selectOpenOf reads the open attempts of some agents.
var selectOpenOf = withRows(strings.Replace(selectAttempts, "FROM attempts", "FROM v JOIN attempts ON agent_id = v.a", 1)+ofAll,
	"a TEXT")

const (
	selectOpenOps   = `SELECT op_id, agent_id FROM attempts WHERE ` + ofAll
	selectTasksOpen = selectOpenOps + ` AND task_seq = CAST($1 AS BIGINT)`
)

// Attempts implements control.Store. Attempts of one item share their labels and their definition, so callers must not
// change those.
func (s *Store) Attempts(ctx context.Context, seq gozzard.TaskSeq) (list []gozzard.Attempt, err error) {
	defer s.timed("attempts", &err)()
	list, all, err := s.readAttempts(ctx, ofTask, int64(seq))
	if err != nil {
		return nil, s.readError("attempts", err)
	}
	if !all { // removed meanwhile
		return nil, noTask(seq)
	}
	if len(list) == 0 {
		_, err = s.Task(ctx, seq)
	}
	return list, err
}

// Open implements control.Store. Labels and definitions are shared as in Attempts.
func (s *Store) Open(ctx context.Context) (list []gozzard.Attempt, err error) {
	defer s.timed("open", &err)()
	list, _, err = s.readAttempts(ctx, ofAll)
	return list, s.readError("open attempts", err)
}

// OpenOf implements control.Store. Labels and definitions are shared as in Attempts.
func (s *Store) OpenOf(ctx context.Context, agents []gozzard.AgentID) (list []gozzard.Attempt, err error) {
	defer s.timed("open_of", &err)()
	list, _, err = s.collectAttempts(ctx, func(f func(*sql.Rows) error) error {
		return s.read.queryRows(ctx, selectOpenOf, len(agents),
			func(i int, to []any) []any { return append(to, text(string(agents[i]))) }, f)
	})
	return list, s.readError("open attempts", err)
}

// OpenOps implements control.Store.
func (s *Store) OpenOps(ctx context.Context, seq gozzard.TaskSeq) (list []record.OpenOp, err error) {
	defer s.timed("open_ops", &err)()
	query, args := selectOpenOps, []any(nil)
	if seq != 0 {
		query, args = selectTasksOpen, []any{int64(seq)}
	}
	err = s.read.each(ctx, query, args, func(r *sql.Rows) error {
		var op, agent string
		if err := r.Scan(&op, &agent); err != nil {
			return err
		}
		id, err := gozzard.ParseOpID(op)
		list = append(list, record.OpenOp{Op: id, Agent: gozzard.AgentID(agent)})
		return err
	})
	return list, s.readError("open attempts", err)
}

// readAttempts reads the attempts that match a condition, in the order of their references.
func (s *Store) readAttempts(ctx context.Context, where string,
	args ...any) (list []gozzard.Attempt, all bool, err error) {
	return s.collectAttempts(ctx, func(f func(*sql.Rows) error) error {
		return s.read.each(ctx, selectAttempts+where, args, f)
	})
}

// collectAttempts reads attempts by a statement with the columns of selectAttempts, in the order of their references. It reads
// their items after them, which is safe because items never change. If an item was removed meanwhile, so was its task: then
// it leaves the attempts of that item out, and all is false.
func (s *Store) collectAttempts(ctx context.Context, each func(func(*sql.Rows) error) error) (list []gozzard.Attempt, all bool,
	err error) {
	// Read the attempts.
	var refs []itemRef // the item of each in list
	var outcomes outcomeCache
	err = each(func(r *sql.Rows) error {
		a, item, err := scanAttempt(r, &outcomes)
		a.Deadline, a.Expires = s.d.clock.here(a.Deadline), s.d.clock.here(a.Expires)
		list, refs = append(list, a), append(refs, itemRef{a.Ref.Task, item})
		return err
	})
	if err != nil {
		return nil, false, err
	}

	// Add what they have in common.
	items, err := s.readItems(ctx, refs)
	if err != nil {
		return nil, false, err
	}

	n := 0
	for i := range list {
		if it, ok := items[refs[i]]; ok {
			list[i].Key, list[i].Action, list[i].Labels, list[i].Spec = it.Key, it.Action, it.Labels, it.Spec
			list[i].Adopt, list[i].Account = it.Adopt, it.Account
			list[n] = list[i]
			n++
		}
	}

	all, list = n == len(list), list[:n]
	slices.SortFunc(list, func(a, b gozzard.Attempt) int {
		return cmp.Or(cmp.Compare(a.Ref.Task, b.Ref.Task), cmp.Compare(a.Ref.Index, b.Ref.Index))
	})

	return list, all, nil
}

// scanAttempt reads a row of selectAttempts. It scans into the types that the driver has: database/sql converts other
// types by way of texts, which is slow.
func scanAttempt(r *sql.Rows, outcomes *outcomeCache) (a gozzard.Attempt, item int32, err error) {
	var task, idx, itemIdx, cloud, state, session int64
	var op, agent, ip, key, outcome string
	err = r.Scan(&task, &idx, &itemIdx, &op, &agent, &cloud, &ip, &key, &state, &session, &outcome,
		(*stamp)(&a.Deadline), (*stamp)(&a.Expires))
	if err != nil {
		return a, 0, err
	}

	a.Ref = gozzard.AttemptRef{Task: gozzard.TaskSeq(task), Index: int32(idx)}
	a.Agent, a.ResultKey = gozzard.AgentID(agent), key
	a.State, a.Session = gozzard.AttemptState(state), uint64(session)
	if a.Op, err = gozzard.ParseOpID(op); err != nil {
		return a, 0, err
	}
	if a.Addr, err = hostAddr(cloud, ip); err != nil {
		return a, 0, err
	}
	if a.Outcome, err = outcomes.read(outcome); err != nil {
		return a, 0, err
	}

	return a, int32(itemIdx), nil
}

// itemRef names an item of a task.
type itemRef struct {
	task gozzard.TaskSeq
	item int32
}

var (
	selectItems = withRows(`SELECT i.task_seq, i.item, i.namespace, i.name, i.action, i.labels, i.spec_hash, i.adopt,
		i.account FROM v
		JOIN items i ON i.task_seq = v.t AND i.item = v.i`, "t BIGINT", "i INTEGER")

	selectSpecs = withRows(`SELECT hash, body FROM specs WHERE hash IN (SELECT i.spec_hash FROM v
		JOIN items i ON i.task_seq = v.t AND i.item = v.i)`, "t BIGINT", "i INTEGER")
)

// readItems finds items in the cache or in the record. It leaves out those that were removed. Of the Attempt values
// that it returns, only the fields of an item are set.
func (s *Store) readItems(ctx context.Context, refs []itemRef) (map[itemRef]gozzard.Attempt, error) {
	// Look into the cache.
	items := map[itemRef]gozzard.Attempt{}
	var missing []itemRef
	asked := map[itemRef]bool{}
	for i, ref := range refs {
		if i > 0 && ref == refs[i-1] || asked[ref] {
			continue
		}
		asked[ref] = true
		if it, cached := s.items.get(ref); cached {
			items[ref] = it
		} else {
			missing = append(missing, ref)
		}
	}

	if len(missing) == 0 {
		return items, nil
	}

	// Read the others.
	specs, err := s.readSpecs(ctx, missing)
	if err != nil {
		return nil, err
	}

	return items, s.read.queryRows(ctx, selectItems, len(missing), itemArgs(missing), func(r *sql.Rows) error {
		var task, item, action int64
		var it gozzard.Attempt
		var labels string
		var hash []byte
		err := r.Scan(&task, &item, &it.Key.Namespace, &it.Key.Name, &action, &labels, &hash,
			&it.Adopt, &it.Account)
		if err != nil {
			return err
		}
		if it.Spec = specs[string(hash)]; it.Spec == nil && hash != nil {
			return nil // a definition is removed after its last task, so this task is being removed
		}

		it.Action = gozzard.Action(action)
		if it.Labels, err = fromLabels(labels); err != nil {
			return err
		}

		items[itemRef{gozzard.TaskSeq(task), int32(item)}] = it
		return nil
	})
}

func itemArgs(refs []itemRef) func(int, []any) []any {
	return func(i int, to []any) []any { return append(to, int64(refs[i].task), int64(refs[i].item)) }
}

// readSpecs reads the definitions of items. The result has each once, by its hash.
func (s *Store) readSpecs(ctx context.Context, refs []itemRef) (map[string][]byte, error) {
	specs := map[string][]byte{}
	return specs, s.read.queryRows(ctx, selectSpecs, len(refs), itemArgs(refs), func(r *sql.Rows) error {
		var hash, body []byte
		if err := r.Scan(&hash, &body); err != nil {
			return err
		}
		specs[string(hash)] = body
		return nil
	})
}

// cacheItems puts the items of a task that was just recorded into the cache, as they would be read from the record.
func (s *Store) cacheItems(a *acceptance) {
	if len(a.items) > maxCachedItems {
		return
	}

	for i := range a.items {
		it := &a.items[i]
		labels, err := fromLabels(it.labels)
		if err != nil { // a reader will read it from the record
			continue
		}
		s.items.put(itemRef{a.seq, int32(i)}, gozzard.Attempt{
			Key:    gozzard.Key{Namespace: text(it.key.Namespace), Name: text(it.key.Name)},
			Action: it.action,
			Labels: labels,
			Spec:   bytes.Clone(a.specs.body(it.spec)),
			Adopt:  it.adopt, Account: text(it.as),
		})
	}
}
