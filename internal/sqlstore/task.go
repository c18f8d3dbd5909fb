package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/gozzard/gozzard"
)

const taskColumns = `t.seq, t.task_id, t.app, t.caller, t.asserted, t.door, t.accepted_at, t.targets`

func taskInto(t *gozzard.Task) []any {
	return []any{&t.Seq, (*taskID)(&t.ID), &t.Caller.App, &t.Caller.User, &t.Caller.Asserted, &t.Door, (*stamp)(&t.At), &t.Targets}
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

func noTask(seq gozzard.TaskSeq) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "there is no task %d; results are kept for a limited time", seq)
}

const selectAttempts = `SELECT task_seq, idx, item, op_id, agent_id, cloud, ip, result_key, state, session, outcome, deadline, expires FROM attempts WHERE `

// The attempts of a task are looked for together with the task, in one statement: where it is gone they are being
// removed, and some are left. Without the casts SQLite would look at the argument to choose a plan, and so plan
// anew for every argument, which takes longer than the read.
const (
	ofTask  = `task_seq = CAST($1 AS BIGINT) AND EXISTS (SELECT 1 FROM tasks WHERE seq = CAST($1 AS BIGINT))`
	ofAgent = `agent_id = CAST($1 AS TEXT) AND state < 4`
	ofAll   = `state < 4`
)

// Attempts implements control.Store. Labels and definitions of attempts of one item are the same map and slice:
// they are for reading.
func (s *Store) Attempts(ctx context.Context, seq gozzard.TaskSeq) (list []gozzard.Attempt, err error) {
	defer s.timed("attempts", &err)()
	list, all, err := s.readAttempts(ctx, ofTask, int64(seq))
	if err != nil {
		return nil, s.readError("attempts", err)
	}
	if !all { // removed since
		return nil, noTask(seq)
	}
	if len(list) == 0 {
		_, err = s.Task(ctx, seq)
	}
	return list, err
}

// Open implements control.Store. Labels and definitions are shared as in Attempts.
func (s *Store) Open(ctx context.Context, agent gozzard.AgentID) (list []gozzard.Attempt, err error) {
	defer s.timed("open", &err)()
	if agent == "" {
		list, _, err = s.readAttempts(ctx, ofAll)
	} else {
		list, _, err = s.readAttempts(ctx, ofAgent, text(string(agent)))
	}
	return list, s.readError("open attempts", err)
}

// readAttempts reads the attempts of a condition in the order of their places, and what they have in common once.
// That never changes, so it may be read after them; all is false when some were left out because it is gone: their
// tasks were removed meanwhile.
func (s *Store) readAttempts(ctx context.Context, where string, args ...any) (list []gozzard.Attempt, all bool,
	err error) {
	var at []place // of each in list
	var outcomes outcomeCache
	err = s.read.each(ctx, selectAttempts+where, args, func(r *sql.Rows) error {
		// as the driver has them: other types are converted by way of texts
		var task, idx, item, cloud, state, session int64
		var op, agent, ip, key, outcome string
		a := gozzard.Attempt{}
		err := r.Scan(&task, &idx, &item, &op, &agent, &cloud, &ip, &key, &state, &session, &outcome,
			(*stamp)(&a.Deadline), (*stamp)(&a.Expires))
		if err != nil {
			return err
		}

		a.Ref = gozzard.AttemptRef{Task: gozzard.TaskSeq(task), Index: int32(idx)}
		a.Agent, a.ResultKey, a.State, a.Session = gozzard.AgentID(agent), key, gozzard.AttemptState(state),
			uint64(session)
		if a.Op, err = gozzard.ParseOpID(op); err != nil {
			return err
		}
		if a.Addr, err = hostAddr(cloud, ip); err != nil {
			return err
		}
		if a.Outcome, err = outcomes.read(outcome); err != nil {
			return err
		}

		list, at = append(list, a), append(at, place{a.Ref.Task, int32(item)})
		return nil
	})

	if err != nil {
		return nil, false, err
	}

	items, err := s.readItems(ctx, at)
	if err != nil {
		return nil, false, err
	}

	n := 0
	for i := range list {
		if it, ok := items[at[i]]; ok {
			list[i].Key, list[i].Action, list[i].Labels, list[i].Spec = it.Key, it.Action, it.Labels, it.Spec
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

// place names an item.
type place struct {
	task gozzard.TaskSeq
	item int32
}

var (
	selectItems = with(`SELECT i.task_seq, i.item, i.namespace, i.name, i.action, i.labels, i.spec_hash FROM v
		JOIN items i ON i.task_seq = v.t AND i.item = v.i`, "t BIGINT", "i INTEGER")

	selectSpecs = with(`SELECT hash, body FROM specs WHERE hash IN (SELECT i.spec_hash FROM v
		JOIN items i ON i.task_seq = v.t AND i.item = v.i)`, "t BIGINT", "i INTEGER")
)

// readItems finds items, near at hand or in the record. Those that are gone are left out.
func (s *Store) readItems(ctx context.Context, at []place) (map[place]gozzard.Attempt, error) {
	items := map[place]gozzard.Attempt{}
	var far []place
	asked := map[place]bool{}
	for i, p := range at {
		if i > 0 && p == at[i-1] || asked[p] {
			continue
		}
		asked[p] = true
		if it, near := s.items.get(p); near {
			items[p] = it
		} else {
			far = append(far, p)
		}
	}

	if len(far) == 0 {
		return items, nil
	}

	specs, err := s.readSpecs(ctx, far)
	if err != nil {
		return nil, err
	}

	return items, s.read.ask(ctx, selectItems, len(far), placeArgs(far), func(r *sql.Rows) error {
		var task, item, action int64
		var it gozzard.Attempt
		var labels string
		var hash []byte
		err := r.Scan(&task, &item, &it.Key.Namespace, &it.Key.Name, &action, &labels, &hash)
		if err != nil {
			return err
		}
		if it.Spec = specs[string(hash)]; it.Spec == nil && hash != nil {
			return nil // the definition goes after its last task: this one is being removed
		}

		it.Action = gozzard.Action(action)
		if it.Labels, err = fromLabels(labels); err != nil {
			return err
		}

		items[place{gozzard.TaskSeq(task), int32(item)}] = it
		return nil
	})
}

func placeArgs(at []place) func(int, []any) []any {
	return func(i int, to []any) []any { return append(to, int64(at[i].task), int64(at[i].item)) }
}

// readSpecs reads the definitions of items, each once, by their hashes.
func (s *Store) readSpecs(ctx context.Context, at []place) (map[string][]byte, error) {
	specs := map[string][]byte{}
	return specs, s.read.ask(ctx, selectSpecs, len(at), placeArgs(at), func(r *sql.Rows) error {
		var hash, body []byte
		if err := r.Scan(&hash, &body); err != nil {
			return err
		}
		specs[string(hash)] = body
		return nil
	})
}

// keepNear puts the items of a task that was just recorded on the shelf, as they would be read.
func (s *Store) keepNear(a *acceptance) {
	if len(a.items) > shelfTask {
		return
	}

	for i := range a.items {
		it := &a.items[i]
		labels, err := fromLabels(it.labels)
		if err != nil { // then the record has it
			continue
		}
		s.items.put(place{a.seq, int32(i)}, gozzard.Attempt{
			Key: gozzard.Key{Namespace: text(it.key.Namespace), Name: text(it.key.Name)}, Action: it.action,
			Labels: labels,
			Spec:   bytes.Clone(a.specs.body(it.spec)),
		})
	}
}
