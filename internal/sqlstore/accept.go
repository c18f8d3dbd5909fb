package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

var (
	insertTasks = insertRows("tasks", "seq, task_id, app, caller, asserted, door, accepted_at, targets, unsettled, trace", "")

	insertItems = insertRows("items", "task_seq, item, namespace, name, action, labels, spec_hash, adopt, account", "")

	insertAttempts = looseRows("attempts",
		"task_seq, idx, item, op_id, agent_id, cloud, ip, result_key, state, session, outcome, deadline, expires")

	upsertSpecs = insertRows("specs", "hash, body, last_task",
		" ON CONFLICT (hash) DO UPDATE SET last_task = excluded.last_task").keyed(1, true)

	// Most registered processes are unchanged. The WHERE saves writing those again.
	//
	// The row keeps what the host has, because the host may reject the new definition: the present one, or that before
	// it when the host did not take the present one. While that is not decided, it is not known.
	upsertProcesses = insertRows("processes",
		"agent_id, namespace, name, labels, spec_hash, hosted, wanted, registered_at, offer_task, offer_idx, former",
		` ON CONFLICT (agent_id, namespace, name) DO UPDATE SET
			labels = excluded.labels, spec_hash = excluded.spec_hash,
			offer_task = excluded.offer_task, offer_idx = excluded.offer_idx,
			former = CASE WHEN `+offerOpen+` THEN 0 WHEN `+offerNotTaken+` THEN processes.former ELSE 2 END,
			former_labels = CASE WHEN `+offerNotTaken+` THEN processes.former_labels ELSE processes.labels END,
			former_spec = CASE WHEN `+offerNotTaken+` THEN processes.former_spec ELSE processes.spec_hash END
			WHERE processes.labels <> excluded.labels OR processes.spec_hash IS DISTINCT FROM excluded.spec_hash`).keyed(3, false)
)

// What became of the attempt that brought the present definition of a process. Attempts are pruned long after their
// verdict.
const (
	offerOpen     = `EXISTS (` + offer + ` AND o.state < 4)`
	offerNotTaken = `EXISTS (` + offer + ` AND o.state = 6)`
	offer         = `SELECT 1 FROM attempts o WHERE o.task_seq = processes.offer_task AND o.idx = processes.offer_idx`
)

// acceptance is a new task on its way into the record. The caller computes all that needs no transaction, so that the
// writer has little to do.
type acceptance struct {
	t        *record.NewTask
	specs    specSet
	items    []item
	itemOf   []int32   // the item of each attempt
	outcomes []string  // the encoded outcome of each attempt
	labels   []string  // the encoded labels of each process to register
	refs     []specRef // the definition of each
	register []int32   // where each process is in t.Register, once, in the order of the table

	// Set by run.
	seq   gozzard.TaskSeq
	known *gozzard.Task            // the earlier task of the same idempotency key
	waits map[gozzard.AgentID]bool // older attempts wait on these agents

	texts []packedText // of the audit row
	open  int          // attempts without a verdict
	quiet bool         // the task has no rows in the audit
}

// item is what several attempts of a task have in common. A task for 20,000 hosts mostly has one item.
type item struct {
	key    gozzard.Key
	action gozzard.Action
	labels string
	spec   specRef
	adopt  bool
	as     string // account
}

// Accept implements control.Store.
func (s *Store) Accept(ctx context.Context, t *record.NewTask) (acc record.Accepted, err error) {
	defer s.timed("accept", &err)()
	t.Audit.Door = cmp.Or(t.Audit.Door, t.Task.Door)
	t.Audit = withOrigin(ctx, t.Audit)
	a, err := newAcceptance(t)
	if err != nil {
		return record.Accepted{}, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "the task cannot be recorded",
			Cause: err}
	}

	if t.FoldAudit != nil {
		var done func(bool)
		a.quiet, done = t.FoldAudit(t.Audit)
		defer func() { done(err == nil && !acc.Known) }()
	}

	rows := len(t.Attempts) + len(a.items) + len(a.register) + 1
	j := &job{op: "a task", app: t.Task.Caller.App, rows: rows, grows: true, late: true, run: a.run, after: a.committed}
	if err := s.w.submit(ctx, j); err != nil {
		return record.Accepted{}, err
	}
	if a.known != nil {
		return record.Accepted{Task: *a.known, Known: true}, nil
	}

	s.cacheItems(a)
	return record.Accepted{Task: t.Task}, nil
}

// committed fills in the numbers that the record gave the task and passes the task on. The writer calls it in the order
// of those numbers.
func (a *acceptance) committed() {
	if a.known != nil {
		return
	}

	t := a.t
	t.Task.Seq = a.seq
	t.Task.ID = gozzard.NewTaskID(a.seq, t.Task.At)
	t.Audit.Seq, t.Audit.TaskID = int64(a.seq), taskname.Of(t.Task.ID)
	for i := range t.Attempts {
		at := &t.Attempts[i]
		at.Ref = gozzard.AttemptRef{Task: a.seq, Index: int32(i)}
		at.State, at.Session = a.begin(at)
	}

	if t.Committed != nil {
		t.Committed <- t
	}
}

func newAcceptance(t *record.NewTask) (*acceptance, error) {
	a := &acceptance{t: t, itemOf: make([]int32, len(t.Attempts)), outcomes: make([]string, len(t.Attempts))}
	labels := labelCache{}
	if err := a.addAttempts(&labels); err != nil {
		return nil, err
	}
	if err := a.addProcesses(&labels); err != nil {
		return nil, err
	}
	return a, a.addAudit()
}

// addAttempts groups the attempts by what they have in common and encodes their outcomes.
func (a *acceptance) addAttempts(labels *labelCache) (err error) {
	t := a.t
	index := map[item]int32{}
	outcomes := outcomeCache{}
	for i := range t.Attempts {
		at := &t.Attempts[i]
		it := item{key: at.Key, action: at.Action, spec: a.specs.add(at.Spec), adopt: at.Adopt, as: at.Account}
		if it.labels, err = labels.text(at.Labels); err != nil {
			return err
		}
		if a.outcomes[i], err = outcomes.text(at.Outcome); err != nil {
			return err
		}

		// Attempts of one item mostly follow each other.
		if n := len(a.items); n > 0 && a.items[n-1] == it {
			a.itemOf[i] = int32(n - 1)
			continue
		}
		n, ok := index[it]
		if !ok {
			n = int32(len(a.items))
			index[it] = n
			a.items = append(a.items, it)
		}
		a.itemOf[i] = n
	}

	return nil
}

// addProcesses lists the processes to register.
func (a *acceptance) addProcesses(labels *labelCache) (err error) {
	all := a.t.Register
	a.labels, a.refs = make([]string, len(all)), make([]specRef, len(all))
	for i := range all {
		if a.labels[i], err = labels.text(all[i].Labels); err != nil {
			return err
		}
		a.refs[i] = a.specs.add(all[i].Spec)
	}

	a.register = tableOrder(all)
	return nil
}

// tableOrder gives the places of processes in the order of their table: the writer finds those of one host on the same
// pages, while a request mostly names one process on all hosts, then the next one. One statement must not name a process
// twice, so the last definition of each process counts.
func tableOrder(all []record.Process) []int32 {
	// There are fewer hosts than processes to sort.
	onAgent := map[gozzard.AgentID][]int32{}
	for i := range all {
		onAgent[all[i].ID.Agent] = append(onAgent[all[i].ID.Agent], int32(i))
	}

	order := make([]int32, 0, len(all))
	for _, agent := range slices.Sorted(maps.Keys(onAgent)) {
		list := onAgent[agent]
		slices.SortFunc(list, func(x, y int32) int {
			return cmp.Or(all[x].ID.Key.Compare(all[y].ID.Key), cmp.Compare(x, y))
		})
		for n, i := range list {
			if n+1 == len(list) || all[i].ID.Key != all[list[n+1]].ID.Key {
				order = append(order, i)
			}
		}
	}
	return order
}

// run records the task inside a transaction.
func (a *acceptance) run(ctx context.Context, c *conn) error {
	// Return the earlier task of the same idempotency key.
	a.seq, a.known = 0, nil
	if found, err := a.findKnown(ctx, c); found || err != nil {
		return err
	}

	// Give the task its number and claim its idempotency key.
	n, err := nextNumber(ctx, c)
	if err != nil {
		return err
	}

	a.seq = gozzard.TaskSeq(n)
	if a.t.IdempotencyKey != "" {
		claimed, err := a.claim(ctx, c)
		if err != nil {
			return err
		}
		if !claimed { // another server committed the key after findKnown; the number stays unused
			_, err := a.findKnown(ctx, c)
			return err
		}
	}

	// Record the task, unless it is above a quota.
	if err := spendQuotas(ctx, c, a.t.Charge); err != nil {
		return err
	}
	if err := a.findWaiting(ctx, c); err != nil {
		return err
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
	if err := a.putProcesses(ctx, c); err != nil {
		return err
	}

	// A task that has all its verdicts already has its outcome, too.
	if a.quiet || a.open > 0 || len(a.t.Attempts) == 0 {
		return nil
	}
	return addAudit(ctx, c, a.verdicts())
}

// findKnown looks for an earlier task with the same idempotency key, and stores it in a.known.
func (a *acceptance) findKnown(ctx context.Context, c *conn) (found bool, err error) {
	if a.t.IdempotencyKey == "" {
		return false, nil
	}

	var hash []byte
	var t gozzard.Task
	found, err = c.one(ctx, `SELECT i.request_hash, `+taskColumns+
		` FROM idempotency i JOIN tasks t ON t.seq = i.task_seq
			WHERE i.app = $1 AND i.caller = $2 AND i.idem_key = $3`,
		[]any{text(a.t.Task.Caller.App), text(a.t.Task.Caller.User), text(a.t.IdempotencyKey)}, append([]any{&hash}, taskInto(&t)...)...)
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

// claim records the idempotency key for this task. It reports false when another task has it.
func (a *acceptance) claim(ctx context.Context, c *conn) (bool, error) {
	n, err := c.change(ctx,
		`INSERT INTO idempotency (app, caller, idem_key, task_seq, request_hash) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (app, caller, idem_key) DO NOTHING`,
		text(a.t.Task.Caller.App), text(a.t.Task.Caller.User), text(a.t.IdempotencyKey), int64(a.seq), a.t.RequestHash[:])
	return n == 1, err
}

func (a *acceptance) insertTask(ctx context.Context, c *conn) error {
	t := &a.t.Task
	name := taskname.Of(gozzard.NewTaskID(a.seq, t.At))
	unsettled := a.open
	if a.quiet { // no verdict is the last one, so there is no row about them
		unsettled = 0
	}

	err := c.later(ctx, insertTasks, []any{int64(a.seq), name, text(t.Caller.App), text(t.Caller.User), t.Caller.Asserted,
		text(t.Door), millis(t.At), t.Targets, unsettled, text(string(t.Trace))})
	if err != nil {
		return err
	}

	if err := addDefinitionBytes(ctx, c, t.Caller.App, a.t.NewBytes, t.At); err != nil {
		return err
	}
	if a.quiet {
		return nil
	}

	if err := putTexts(ctx, c, a.texts); err != nil {
		return fmt.Errorf("texts of the audit: %w", err)
	}
	audit := a.t.Audit
	audit.Seq, audit.TaskID = int64(a.seq), name
	return insertAudit(ctx, c, &audit)
}

func (a *acceptance) insertAttempts(ctx context.Context, c *conn) error {
	err := c.put(ctx, insertItems, len(a.items), func(i int, to []any) []any {
		it := &a.items[i]
		return append(to, int64(a.seq), i, text(it.key.Namespace), text(it.key.Name), int64(it.action), it.labels,
			it.spec.value(), it.adopt, text(it.as))
	})
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}

	return c.put(ctx, insertAttempts, len(a.t.Attempts), func(i int, to []any) []any {
		at := &a.t.Attempts[i]
		state, session := a.begin(at)
		return append(to, int64(a.seq), i, int64(a.itemOf[i]), at.Op.String(), text(string(at.Agent)),
			at.Addr.Cloud, ipText(at.Addr.IP), text(at.ResultKey), int64(state), counter(session),
			a.outcomes[i], c.d.clock.recorded(at.Deadline), c.d.clock.recorded(at.Expires))
	})
}

func (a *acceptance) putProcesses(ctx context.Context, c *conn) error {
	return c.put(ctx, upsertProcesses, len(a.register), func(n int, to []any) []any {
		i := a.register[n]
		p := &a.t.Register[i]
		return append(to, text(string(p.ID.Agent)), text(p.ID.Namespace), text(p.ID.Name), a.labels[i],
			a.refs[i].value(), p.Hosted, int64(p.Wanted), millis(p.RegisteredAt), int64(a.seq), int64(p.Attempt),
			formerNone)
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
	index  map[specRef]int // into bodies and refs
	bodies [][]byte
	refs   []specRef

	// The argument and the result of the last add. Attempts of one item share the slice, so most calls find it here
	// and need no hash.
	lastBody []byte
	lastRef  specRef
}

// add puts a definition into the set and returns its reference.
func (s *specSet) add(body []byte) specRef {
	if len(body) == 0 {
		return specRef{}
	}
	if len(s.lastBody) == len(body) && &s.lastBody[0] == &body[0] {
		return s.lastRef
	}

	ref := refOf(body)
	s.lastBody, s.lastRef = body, ref
	if _, ok := s.index[ref]; !ok {
		if s.index == nil {
			s.index = map[specRef]int{}
		}
		s.index[ref] = len(s.refs)
		s.refs = append(s.refs, ref)
		s.bodies = append(s.bodies, body)
	}

	return ref
}

// body is the definition that a reference names, or nil.
func (s *specSet) body(r specRef) []byte {
	if i, ok := s.index[r]; ok {
		return s.bodies[i]
	}
	return nil
}

// put records the definitions. task is the newest task that names them.
func (s *specSet) put(ctx context.Context, c *conn, task int64) error {
	return c.put(ctx, upsertSpecs, len(s.refs), func(i int, to []any) []any {
		return append(to, s.refs[i].hash[:], s.bodies[i], task)
	})
}
