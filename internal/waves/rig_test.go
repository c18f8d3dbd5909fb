package waves_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/waves"
	"github.com/gozzard/gozzard/test/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const biz = 2

var caller = gozzard.Caller{App: "bk_sops", User: "admin", Asserted: true, Rights: gozzard.Everything()}

// bare is a caller as the record stores it, without rights.
func bare(c gozzard.Caller) gozzard.Caller {
	c.Rights = nil
	return c
}

// rig is a runner with a real record. The fleet is simulated: operations are recorded with their idempotency keys as
// the control plane does it, and the test gives the verdicts.
type rig struct {
	t     *testing.T
	path  string
	store *sqlstore.Store
	o     waves.Options

	runner *waves.Runner
	kill   context.CancelFunc
	gone   chan struct{} // closed when the run has ended

	mu       sync.Mutex
	rows     []topology.Row
	missing  map[int][]string           // missing attributes, by process
	gives    map[string]gozzard.Outcome // verdicts by key and host; done when there is none
	open     map[string]bool            // no verdict for these
	edition  string                     // of the definitions
	sent     []sent                     // operations that were accepted, not counting repeats
	refuse   func() error               // what Operate answers instead of accepting
	accepted func()                     // called after an operation was accepted
}

// sent is an operation as it was accepted.
type sent struct {
	op    gozzard.Operation
	names []string // key@host of each target
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "gozzard.db"), missing: map[int][]string{},
		gives: map[string]gozzard.Outcome{}, open: map[string]bool{},
		edition: "first"}
	storetest.NewSQLite(t, r.path)
	store, err := sqlstore.OpenSQLite(t.Context(), r.path,
		sqlstore.Options{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}

	r.store = store
	r.o = waves.Options{Store: store, Plane: r, Rights: func(gozzard.Caller) *gozzard.Rights { return caller.Rights }}
	t.Cleanup(func() {
		if r.kill != nil {
			r.end()
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})

	return r
}

// run begins a run of the server.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.runner, r.kill, r.gone = waves.New(r.o), cancel, make(chan struct{})
	runner, gone := r.runner, r.gone
	go func() {
		defer close(gone)
		if err := runner.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
}

// end kills the run.
func (r *rig) end() {
	r.kill()
	<-r.gone
}

// process adds a process with instances to the topology.
func (r *rig) process(id int, row topology.Row) {
	row.Biz, row.Process = biz, id
	if row.Name == "" {
		row.Name = fmt.Sprint("p", id)
	}
	if !row.Host.IP.IsValid() {
		row.Host.IP = netip.MustParseAddr("10.0.0.1")
	}
	if len(row.Instances) == 0 {
		row.Instances = []topology.RowInstance{{Local: 1, Inst: 1}}
	}
	r.rows = append(r.rows, row)
}

// May implements waves.Plane.
func (r *rig) May(c gozzard.Caller, a gozzard.Action, key gozzard.Key, t gozzard.Target, spec []byte) bool {
	h := gozzard.HostRef{Agent: t.Agent, Addrs: []gozzard.HostAddr{t.Addr}}
	s, err := gozzard.DecodeSpec(spec)
	return err == nil && c.Rights.May(a, key.Namespace, h, s.Account())
}

// FindProcesses implements waves.Plane.
func (r *rig) FindProcesses(_ gozzard.Caller, q topology.Query) (int, []topology.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []topology.Row
	for _, row := range r.rows {
		if row.Biz == q.Biz && (len(q.Processes) == 0 || slices.Contains(q.Processes, row.Process)) {
			rows = append(rows, row)
		}
	}
	total := len(rows)
	return total, rows[min(q.Start, total):min(q.Start+q.Limit, total)]
}

// TopologyItems implements waves.Plane.
func (r *rig) TopologyItems(_ context.Context, _ int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem,
	error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var items []record.TopologyItem
	for i := range rows {
		row := &rows[i]
		for j, in := range row.Instances {
			target := gozzard.Target{Addr: row.Host.Addr()}
			if row.Host.Agent != "" {
				target = gozzard.Target{Agent: row.Host.Agent}
			}
			items = append(items, record.TopologyItem{Row: row, Instance: j, Missing: r.missing[row.Process],
				Item: gozzard.Item{
					Action: a, Key: topology.Key(biz, row.Name, in.Local),
					Labels: map[string]string{"bk_process_id": fmt.Sprint(row.Process)},
					Spec: &gozzard.Spec{Identity: gozzard.Identity{ProcName: row.Name},
						Control: gozzard.Control{Start: r.edition}}, Targets: []gozzard.Target{target},
				}})
		}
	}

	return items, nil
}

// Operate implements waves.Plane.
func (r *rig) Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.refuse != nil {
		if err := r.refuse(); err != nil {
			return gozzard.Task{}, err
		}
	}

	s := sent{op: *op}
	n := &record.NewTask{Task: gozzard.Task{Caller: op.Caller, Door: op.Door, At: time.Now()},
		IdempotencyKey: op.IdempotencyKey, RequestHash: op.RequestHash}
	for _, it := range op.Items {
		for _, target := range it.Targets {
			name := it.Key.Name + "@" + target.Addr.String()
			if target.Agent != "" {
				name = it.Key.Name + "@" + string(target.Agent)
			}
			s.names = append(s.names, name)
			a := gozzard.Attempt{Op: gozzard.NewOpID(), Agent: target.Agent, Addr: target.Addr, Key: it.Key,
				Action: it.Action, ResultKey: target.ResultKey,
				Labels: it.Labels, Spec: gozzard.EncodeSpec(it.Spec), State: gozzard.AttemptDispatched, Session: 1}
			if !r.open[name] {
				a.State, a.Outcome = r.verdict(name)
			}
			n.Attempts = append(n.Attempts, a)
		}
	}

	n.Task.Targets = len(n.Attempts)
	acc, err := r.store.Accept(ctx, n)
	if err != nil {
		return gozzard.Task{}, err
	}
	if !acc.Known {
		r.sent = append(r.sent, s)
	}
	if r.accepted != nil {
		r.accepted()
	}

	return acc.Task, nil
}

func (r *rig) verdict(name string) (gozzard.AttemptState, gozzard.Outcome) {
	out, given := r.gives[name]
	switch {
	case !given:
		return gozzard.AttemptOK, gozzard.Outcome{Code: gozzard.CodeOK, Message: "success"}
	case out.Code == gozzard.CodeInterrupted:
		return gozzard.AttemptInterrupted, out
	case out.Code == gozzard.CodeUnreachable || out.Code == gozzard.CodeExpired:
		return gozzard.AttemptNotExecuted, out
	}
	return gozzard.AttemptFailed, out
}

// Await implements waves.Plane.
func (r *rig) Await(ctx context.Context, by gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (record.TaskResults, error) {
	seq, _ := id.Seq()
	for end := time.Now().Add(limit); ; {
		task, err := r.store.Task(ctx, seq)
		if err != nil {
			return record.TaskResults{}, err
		}
		if task.Caller.App != by.App {
			return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
		}
		attempts, err := r.store.Attempts(ctx, seq)
		res := record.TaskResults{Task: task, Attempts: attempts}
		if err != nil || res.Open() == 0 || !time.Now().Before(end) {
			return res, err
		}
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// answer gives what is open its verdict.
func (r *rig) answer(names ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := r.store.Open(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}

	for _, a := range list {
		name := a.Key.Name + "@" + a.Addr.String()
		if !slices.Contains(names, name) {
			continue
		}
		state, out := r.verdict(name)
		row := record.Settlement{Ref: a.Ref, Op: a.Op, Agent: a.Agent, To: state, Outcome: out}
		if moved, err := r.store.Settle(r.t.Context(), []record.Settlement{row}); err != nil || !moved[0] {
			r.t.Fatal("a verdict was not taken", err)
		}
	}
}

// create begins a job on all processes.
func (r *rig) create(a gozzard.Action, g record.Granularity) record.Job {
	r.t.Helper()
	j, err := r.runner.Create(r.t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: a, Granularity: g})
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// finish waits for the end of a job.
func (r *rig) finish(id int64) (record.Job, []record.JobTask) {
	r.t.Helper()
	var j record.Job
	r.until("the job does not end", func() bool {
		var err error
		if j, err = r.store.Job(r.t.Context(), biz, id); err != nil {
			r.t.Fatal(err)
		}
		return j.State.Final()
	})
	return j, r.tasks(id)
}

func (r *rig) tasks(id int64) []record.JobTask {
	r.t.Helper()
	page, err := r.store.Tasks(r.t.Context(), record.JobTaskFilter{Job: id, Limit: -1})
	if err != nil {
		r.t.Fatal(err)
	}
	return page.Tasks
}

func (r *rig) until(words string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal(words)
		}
	}
}

// waves lists the keys of each operation that was accepted.
func (r *rig) waves() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sent {
		list = append(list, strings.Join(s.names, " "))
	}
	return list
}

// states lists the tasks as "name state reason".
func states(tasks []record.JobTask) (list []string) {
	for _, t := range tasks {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", t.Key.Name, t.State, t.Reason)))
	}
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func wantKind(t *testing.T, err error, kind gozzard.ErrorKind) {
	t.Helper()
	if err == nil || gozzard.KindOf(err) != kind {
		t.Fatalf("got error %v, want one of kind %s", err, kind)
	}
}
