package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

var (
	insertItems = insert("items", "task_seq, item, namespace, name, action, labels, spec_hash", "")

	insertAttempts = insert("attempts",
		"task_seq, idx, item, op_id, agent_id, cloud, ip, result_key, state, session, outcome, deadline, expires", "")

	upsertSpecs = insert("specs", "hash, body, last_task",
		" ON CONFLICT (hash) DO UPDATE SET last_task = excluded.last_task")

	upsertProcesses = insert("processes", "agent_id, namespace, name, labels, spec_hash, hosted, wanted, registered_at",
		` ON CONFLICT (agent_id, namespace, name) DO UPDATE SET
			labels = excluded.labels, spec_hash = excluded.spec_hash
			WHERE processes.labels <> excluded.labels OR processes.spec_hash IS DISTINCT FROM excluded.spec_hash`)  // most are as they were
)

// acceptance is a task made ready for the writer by its caller: what can be computed outside of the transaction is.
type acceptance struct {
	t        *record.NewTask
	specs    specSet
	items    []item
	itemOf   []int32 // item of each attempt
	outcomes []string
	register []record.Process
	labels   []string // of register
	refs     []specRef

	seq   gozzard.TaskSeq
	known *gozzard.Task
}

// item is what attempts of a task have in common.
type item struct {
	key    gozzard.Key
	action gozzard.Action
	labels string
	spec   specRef
}

// Accept implements control.Store.
func (s *Store) Accept(ctx context.Context, t *record.NewTask) (acc record.Accepted, err error) {
	defer s.timed("accept", &err)()
	a, err := newAcceptance(t)
	if err != nil {
		return record.Accepted{}, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the task cannot be recorded",
			Cause: err}
	}

	rows := len(t.Attempts) + len(a.items) + len(a.register) + 1
	if err := s.w.submit(ctx, &job{op: "a task", rows: rows, grows: true, run: a.run, after: a.committed}); err != nil {
		return record.Accepted{}, err
	}
	if a.known != nil {
		return record.Accepted{Task: *a.known, Known: true}, nil
	}

	s.keepNear(a)
	return record.Accepted{Task: t.Task}, nil
}

// committed fills in what the record gave and passes the task on, in the order of numbers.
func (a *acceptance) committed() {
	if a.known != nil {
		return
	}

	t := a.t
	t.Task.Seq = a.seq
	t.Task.ID = gozzard.NewTaskID(a.seq, t.Task.At)
	t.Audit.Seq, t.Audit.TaskID = int64(a.seq), taskname.Of(t.Task.ID)
	for i := range t.Attempts {
		t.Attempts[i].Ref = gozzard.AttemptRef{Task: a.seq, Index: int32(i)}
	}

	if t.Committed != nil {
		t.Committed()
	}
}

func newAcceptance(t *record.NewTask) (*acceptance, error) {
	a := &acceptance{t: t, itemOf: make([]int32, len(t.Attempts)), outcomes: make([]string, len(t.Attempts))}
	index := map[item]int32{}
	labels := labelCache{}
	outcomes := outcomeCache{}
	var err error
	for i := range t.Attempts {
		at := &t.Attempts[i]
		it := item{key: at.Key, action: at.Action, spec: a.specs.add(at.Spec)}
		if it.labels, err = labels.text(at.Labels); err != nil {
			return nil, err
		}
		if a.outcomes[i], err = outcomes.text(at.Outcome); err != nil {
			return nil, err
		}
		n, ok := index[it]
		if !ok {
			n = int32(len(a.items))
			index[it] = n
			a.items = append(a.items, it)
		}
		a.itemOf[i] = n
	}

	last := map[gozzard.ProcID]int{} // one statement must not name a process twice: the last definition counts
	for i := range t.Register {
		last[t.Register[i].ID] = i
	}

	for i := range t.Register {
		if p := &t.Register[i]; last[p.ID] == i {
			l, err := labels.text(p.Labels)
			if err != nil {
				return nil, err
			}
			a.register = append(a.register, *p)
			a.labels = append(a.labels, l)
			a.refs = append(a.refs, a.specs.add(p.Spec))
		}
	}

	return a, nil
}

func (a *acceptance) run(ctx context.Context, c *conn) error {
	a.seq, a.known = 0, nil
	if found, err := a.lookup(ctx, c); found || err != nil {
		return err
	}

	n, err := draw(ctx, c)
	if err != nil {
		return err
	}

	a.seq = gozzard.TaskSeq(n)
	if a.t.IdempotencyKey != "" {
		claimed, err := a.claim(ctx, c)
		if err != nil {
			return err
		}
		if !claimed { // another server has committed the key since it was looked up; the number drawn stays unused
			_, err := a.lookup(ctx, c)
			return err
		}
	}

	if err := a.insertTask(ctx, c); err != nil {
		return err
	}
	if err := a.specs.put(ctx, c, n); err != nil {
		return err
	}
	if err := a.insertAttempts(ctx, c); err != nil {
		return err
	}

	return a.putProcesses(ctx, c)
}

// draw takes the next number.
func draw(ctx context.Context, c *conn) (n int64, err error) {
	_, err = c.one(ctx, `UPDATE counters SET value = value + 1 WHERE name = 'number' RETURNING value`, nil, &n)
	return n, err
}

// lookup finds the task of the idempotency key.
func (a *acceptance) lookup(ctx context.Context, c *conn) (found bool, err error) {
	if a.t.IdempotencyKey == "" {
		return false, nil
	}

	var hash []byte
	var t gozzard.Task
	found, err = c.one(ctx, `SELECT i.request_hash, `+taskColumns+
		` FROM idempotency i JOIN tasks t ON t.seq = i.task_seq WHERE i.app = $1 AND i.idem_key = $2`,
		[]any{text(a.t.Task.Caller.App), text(a.t.IdempotencyKey)}, append([]any{&hash}, taskInto(&t)...)...)
	if !found || err != nil {
		return false, err
	}
	if !bytes.Equal(hash, a.t.RequestHash[:]) {
		return true, gozzard.Errorf(gozzard.ErrInvalid, "the idempotency key was used for another request (task %s)",
			taskname.Of(t.ID))
	}

	a.known = &t
	return true, nil
}

// claim writes the idempotency key unless another one has it.
func (a *acceptance) claim(ctx context.Context, c *conn) (bool, error) {
	n, err := c.change(ctx,
		`INSERT INTO idempotency (app, idem_key, task_seq, request_hash) VALUES ($1, $2, $3, $4) ON CONFLICT (app, idem_key) DO NOTHING`,
		text(a.t.Task.Caller.App), text(a.t.IdempotencyKey), int64(a.seq), a.t.RequestHash[:])
	return n == 1, err
}

func (a *acceptance) insertTask(ctx context.Context, c *conn) error {
	t := &a.t.Task
	name := taskname.Of(gozzard.NewTaskID(a.seq, t.At))
	_, err := c.change(ctx,
		`INSERT INTO tasks (seq, task_id, app, caller, asserted, door, accepted_at, targets) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		int64(a.seq), name, text(t.Caller.App), text(t.Caller.User), t.Caller.Asserted, text(t.Door),
		millis(t.At), t.Targets)
	if err != nil {
		return err
	}
	audit := a.t.Audit
	audit.Seq, audit.TaskID = int64(a.seq), name
	return insertAudit(ctx, c, &audit)
}

func (a *acceptance) insertAttempts(ctx context.Context, c *conn) error {
	err := c.put(ctx, insertItems, len(a.items), func(i int, to []any) []any {
		it := &a.items[i]
		return append(to, int64(a.seq), i, text(it.key.Namespace), text(it.key.Name), int64(it.action), it.labels,
			it.spec.value())
	})

	if err != nil {
		return fmt.Errorf("items: %w", err)
	}

	return c.put(ctx, insertAttempts, len(a.t.Attempts), func(i int, to []any) []any {
		at := &a.t.Attempts[i]
		return append(to, int64(a.seq), i, int64(a.itemOf[i]), at.Op.String(), text(string(at.Agent)), at.Addr.Cloud,
			ipText(at.Addr.IP),
			text(at.ResultKey), int64(at.State), counter(at.Session), a.outcomes[i], millis(at.Deadline),
			millis(at.Expires))
	})
}

func (a *acceptance) putProcesses(ctx context.Context, c *conn) error {
	return c.put(ctx, upsertProcesses, len(a.register), func(i int, to []any) []any {
		p := &a.register[i]
		return append(to, text(string(p.ID.Agent)), text(p.ID.Namespace), text(p.ID.Name), a.labels[i],
			a.refs[i].value(), p.Hosted,
			int64(p.Wanted), millis(p.RegisteredAt))
	})
}

// specRef names a definition by its hash; the zero value names none.
type specRef struct {
	hash [sha256.Size]byte
	set  bool
}

func refOf(body []byte) specRef {
	if len(body) == 0 {
		return specRef{}
	}
	return specRef{hash: sha256.Sum256(body), set: true}
}

func (r specRef) value() any {
	if !r.set {
		return nil
	}
	return r.hash[:]
}

// specSet is the definitions of one task, each once.
type specSet struct {
	index  map[specRef]int
	bodies [][]byte
	refs   []specRef
	last   []byte // attempts of one item share the slice: most calls end here
	ref    specRef
}

func (s *specSet) add(body []byte) specRef {
	if len(body) == 0 {
		return specRef{}
	}
	if len(s.last) == len(body) && &s.last[0] == &body[0] {
		return s.ref
	}

	s.last, s.ref = body, refOf(body)
	if _, ok := s.index[s.ref]; !ok {
		if s.index == nil {
			s.index = map[specRef]int{}
		}
		s.index[s.ref] = len(s.refs)
		s.refs = append(s.refs, s.ref)
		s.bodies = append(s.bodies, body)
	}

	return s.ref
}

// body is the definition that a reference names, nil for none.
func (s *specSet) body(r specRef) []byte {
	if i, ok := s.index[r]; ok {
		return s.bodies[i]
	}
	return nil
}

func (s *specSet) put(ctx context.Context, c *conn, task int64) error {
	return c.put(ctx, upsertSpecs, len(s.refs), func(i int, to []any) []any {
		return append(to, s.refs[i].hash[:], s.bodies[i], task)
	})
}
