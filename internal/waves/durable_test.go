package waves_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/waves"
)

// mortal is a server that dies at one of its calls: before the call has an effect, or after it and before the caller
// gets the answer.
type mortal struct {
	waves.Store
	waves.Plane
	after bool
	die   func()

	mu   sync.Mutex
	left int // calls until it dies
	dead bool
}

func (m *mortal) call(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.dead {
		return context.Canceled
	}
	if m.left--; m.left > 0 {
		return f()
	}

	m.dead = true
	m.die()

	if m.after {
		if err := f(); err != nil {
			return err
		}
	}

	return context.Canceled
}

func (m *mortal) SaveTasks(_ context.Context, j *record.Job, tasks []record.JobTask) error {
	return m.call(func() error { return m.Store.SaveTasks(context.Background(), j, tasks) })
}

func (m *mortal) Tasks(_ context.Context, f record.JobTaskFilter) (page record.JobTaskPage, err error) {
	return page, m.call(func() (err error) {
		page, err = m.Store.Tasks(context.Background(), f)
		return err
	})
}

func (m *mortal) Operate(_ context.Context, op *gozzard.Operation) (task gozzard.Task, err error) {
	return task, m.call(func() (err error) {
		task, err = m.Plane.Operate(context.Background(), op)
		return err
	})
}

func (m *mortal) Await(_ context.Context, by gozzard.Caller, id gozzard.TaskID,
	limit time.Duration) (res record.TaskResults, err error) {
	return res, m.call(func() (err error) {
		res, err = m.Plane.Await(context.Background(), by, id, limit)
		return err
	})
}

// TestKilledAnywhere kills the server at each of its calls and starts another one with the same record: the job ends
// as it would have without that, and nothing is sent twice.
func TestKilledAnywhere(t *testing.T) {
	r := newRig(t)
	for id := 1; id <= 9; id++ {
		r.process(id, topology.Row{Set: 1 + id%2, Priority: id / 4})
	}

	r.gives["p5_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed}
	want := "[p1_1 succeeded p2_1 succeeded p3_1 succeeded p4_1 succeeded p5_1 failed verdict p6_1 succeeded p7_1 succeeded p8_1 succeeded p9_1 failed earlier]"
	for _, after := range []bool{false, true} {
		died := true
		for n := 1; died; n++ {
			r.runner = waves.New(r.o)
			j := r.create(gozzard.ActionStart, record.BySet)
			r.sent = nil
			died = !r.runUntilDeath(j.ID, n, after)
			r.run()
			_, tasks := r.finish(j.ID)
			r.end()
			what := fmt.Sprintf("killed at call %d, after its effect: %v", n, after)
			same(t, what, states(tasks), want)
			var names []string
			for _, s := range r.sent {
				names = append(names, s.names...)
			}
			slices.Sort(names)
			if len(slices.Compact(slices.Clone(names))) != 8 || len(names) != 8 {
				t.Fatalf("%s: sent %v", what, names)
			}
			if n > 200 {
				t.Fatal("the job never ends")
			}
		}
	}
}

// runUntilDeath runs a server that dies at its call n and reports whether the job ended before.
func (r *rig) runUntilDeath(job int64, n int, after bool) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := &mortal{Store: r.store, Plane: r, after: after, left: n, die: cancel}
	runner := waves.New(waves.Options{Store: m, Plane: m})
	runner.SplitAt(2)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := runner.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()

	ended := false
	r.until("the job neither ends nor is its server killed", func() bool {
		j, err := r.store.Job(r.t.Context(), biz, job)
		if err != nil {
			r.t.Fatal(err)
		}
		ended = j.State.Final()
		return ended || ctx.Err() != nil
	})

	cancel()
	<-gone
	return ended
}

// TestSplit: a wave that is larger than an operation may be is sent in parts, and ends when all of them have.
func TestSplit(t *testing.T) {
	r := newRig(t)
	for id := 1; id <= 7; id++ {
		r.process(id, topology.Row{Priority: id / 6})
	}
	r.gives["p5_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed}
	r.runner = waves.New(r.o)
	j := r.create(gozzard.ActionStart, "")
	r.runUntilDeath(j.ID, 1000, false)
	same(t, "sizes", sizes(r.sent), "[2 2 1]")
	same(t, "tasks", states(r.tasks(j.ID)),
		"[p1_1 succeeded p2_1 succeeded p3_1 succeeded p4_1 succeeded p5_1 failed verdict p6_1 failed earlier p7_1 failed earlier]")
}

func sizes(list []sent) (n []int) {
	for _, s := range list {
		n = append(n, len(s.names))
	}
	return n
}

// TestProgress: verdicts are recorded as they come, and the next wave begins when the last one is there.
func TestProgress(t *testing.T) {
	r := newRig(t)
	for id := 1; id <= 3; id++ {
		r.process(id, topology.Row{Priority: id / 3})
	}

	r.open["p2_1@0:10.0.0.1"] = true
	r.run()
	j := r.create(gozzard.ActionStart, "")
	r.until("the first verdict is not recorded", func() bool {
		return fmt.Sprint(states(r.tasks(j.ID))) == "[p1_1 succeeded p2_1 running p3_1 pending]"
	})

	if got, err := r.runner.Job(t.Context(), caller, biz, j.ID); err != nil || got.State != record.JobRunning {
		t.Fatalf("%+v, %v", got, err)
	}

	_, err := r.runner.Retry(t.Context(), caller, biz, j.ID, nil)
	wantKind(t, err, gozzard.ErrConflict)
	same(t, "operations", len(r.waves()), 1)
	r.answer("p2_1@0:10.0.0.1")
	_, tasks := r.finish(j.ID)
	same(t, "tasks", states(tasks), "[p1_1 succeeded p2_1 succeeded p3_1 succeeded]")
}

// TestTimeout: a task without a verdict in time has failed, and no later wave starts.
func TestTimeout(t *testing.T) {
	r := newRig(t)
	r.o.Timeout = 50 * time.Millisecond
	for id := 1; id <= 3; id++ {
		r.process(id, topology.Row{Priority: id / 3})
	}

	r.open["p1_1@0:10.0.0.1"] = true
	r.run()
	j, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "tasks", states(tasks), "[p1_1 failed timeout p2_1 succeeded p3_1 failed earlier]")
	r.answer("p1_1@0:10.0.0.1") // too late for this job
	delete(r.open, "p1_1@0:10.0.0.1")

	if _, err := r.runner.Retry(t.Context(), caller, biz, j.ID, nil); err != nil {
		t.Fatal(err)
	}

	j, _ = r.finish(j.ID)
	same(t, "job", j.State, record.JobSucceeded)
}

// TestRefused: a rejected operation fails its wave, with a message for callers. An operation with an unknown result is
// tried again.
func TestRefused(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{Priority: 1})
	r.process(2, topology.Row{Priority: 2})
	r.run()

	for _, tt := range []struct {
		err     error
		reason  record.JobReason
		message string
	}{
		{&gozzard.Error{Kind: gozzard.ErrStorageFull, Message: "no room", Cause: fmt.Errorf("inner words")},
			record.ReasonRefused, "no room"},
		{gozzard.Errorf(gozzard.ErrInvalid, "wrong"), record.ReasonRefused, "wrong"},
		{fmt.Errorf("inner words"), record.ReasonInternal, "the operation could not be recorded"},
	} {
		r.mu.Lock()
		r.refuse = func() error { return tt.err }
		r.mu.Unlock()
		j, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
		same(t, "tasks", states(tasks), fmt.Sprintf("[p1_1 failed %s p2_1 failed earlier]", tt.reason))
		same(t, "message", tasks[0].Message, tt.message)
		r.mu.Lock()
		r.refuse = nil
		r.mu.Unlock()
		if _, err := r.runner.Retry(t.Context(), caller, biz, j.ID, nil); err != nil {
			t.Fatal(err)
		}
		j, _ = r.finish(j.ID)
		same(t, "job", j.State, record.JobSucceeded)
	}

	tries := 0
	r.mu.Lock()
	r.refuse = func() error {
		if tries++; tries == 1 {
			return gozzard.Errorf(gozzard.ErrUnavailable, "the record does not answer")
		}
		return nil
	}
	r.mu.Unlock()
	j, _ := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "job", j.State, record.JobSucceeded)
}

func TestRetry(t *testing.T) {
	r := newRig(t)
	for id := 1; id <= 5; id++ {
		r.process(id, topology.Row{Priority: id / 2})
	}

	r.gives["p2_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed, Message: "exit 1"}
	r.gives["p3_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed}
	r.run()
	first, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "tasks", states(tasks),
		"[p1_1 succeeded p2_1 failed verdict p3_1 failed verdict p4_1 failed earlier p5_1 failed earlier]")

	_, err := r.runner.Retry(t.Context(), caller, biz+1, first.ID, nil)
	wantKind(t, err, gozzard.ErrNotFound)
	_, err = r.runner.Retry(t.Context(), caller, biz, first.ID+1, nil)
	wantKind(t, err, gozzard.ErrNotFound)
	_, err = r.runner.Retry(t.Context(), caller, biz, first.ID, []int64{tasks[1].ID, 4711})
	wantKind(t, err, gozzard.ErrNotFound)
	_, err = r.runner.Retry(t.Context(), caller, biz, first.ID, []int64{tasks[0].ID})
	wantKind(t, err, gozzard.ErrInvalid)

	bob := gozzard.Caller{App: "bk_sops", User: "bob", Rights: gozzard.Everything()}
	delete(r.gives, "p3_1@0:10.0.0.1")
	// a task that is not named prevents nothing
	j, err := r.runner.Retry(t.Context(), bob, biz, first.ID, []int64{tasks[2].ID, tasks[4].ID})
	if err != nil || j.State != record.JobPending || !j.Ended.IsZero() || !j.Started.Equal(first.Started) {
		t.Fatalf("%+v, %v", j, err)
	}

	j, tasks = r.finish(first.ID)
	same(t, "job", j.State, record.JobFailed)
	same(t, "tasks", states(tasks),
		"[p1_1 succeeded p2_1 failed verdict p3_1 succeeded p4_1 failed earlier p5_1 succeeded]")

	if _, err = r.runner.Retry(t.Context(), bob, biz, first.ID, nil); err != nil { // fails as before
		t.Fatal(err)
	}

	_, tasks = r.finish(first.ID)
	same(t, "tasks", states(tasks),
		"[p1_1 succeeded p2_1 failed verdict p3_1 succeeded p4_1 failed earlier p5_1 succeeded]")
	same(t, "message", tasks[1].Message, "exit 1")

	delete(r.gives, "p2_1@0:10.0.0.1")

	if _, err = r.runner.Retry(t.Context(), bob, biz, first.ID, nil); err != nil {
		t.Fatal(err)
	}

	j, tasks = r.finish(first.ID)
	same(t, "job", j.State, record.JobSucceeded)
	rounds := ""
	for _, task := range tasks {
		rounds += fmt.Sprint(task.Round)
		if task.Message != "" || task.Code != "" {
			t.Errorf("something of an earlier round is left: %+v", task)
		}
	}

	same(t, "rounds", rounds, "03131")
	same(t, "operations", r.waves(), []string{"p1_1@0:10.0.0.1", "p2_1@0:10.0.0.1 p3_1@0:10.0.0.1", "p3_1@0:10.0.0.1",
		"p5_1@0:10.0.0.1", "p2_1@0:10.0.0.1",
		"p2_1@0:10.0.0.1", "p4_1@0:10.0.0.1"})

	for _, s := range r.sent {
		same(t, "caller", s.op.Caller, caller)
	}

	rows, err := r.store.Audit(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}

	retries := 0
	for _, row := range rows {
		if row.Caller == bare(bob) && row.Act == fmt.Sprintf("retry:start job %d", first.ID) {
			retries++
		}
	}

	same(t, "audit rows of bob", retries, 3)
	_, err = r.runner.Retry(t.Context(), bob, biz, first.ID, nil)
	wantKind(t, err, gozzard.ErrInvalid)
}

// TestRetryMissing: an attribute that was missing at the creation of a job stays missing in this job.
func TestRetryMissing(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{Priority: 1})
	r.process(2, topology.Row{Priority: 2})
	r.missing[1] = []string{"start_cmd"}
	r.run()
	j, _ := r.finish(r.create(gozzard.ActionStart, "").ID)
	delete(r.missing, 1)

	if _, err := r.runner.Retry(t.Context(), caller, biz, j.ID, nil); err != nil {
		t.Fatal(err)
	}

	j, tasks := r.finish(j.ID)
	same(t, "tasks", states(tasks), "[p1_1 failed missing p2_1 failed earlier]")

	if _, err := r.runner.Retry(t.Context(), caller, biz, j.ID, []int64{tasks[1].ID}); err != nil { // by name it goes
		t.Fatal(err)
	}

	_, tasks = r.finish(j.ID)
	same(t, "tasks", states(tasks), "[p1_1 failed missing p2_1 succeeded]")
}

// TestLostAnswer: the Runner finds a job that was recorded although its creator got no answer.
func TestLostAnswer(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	ctx, cancel := context.WithCancel(t.Context())
	runner := waves.New(r.o)
	runner.LookEvery(10 * time.Millisecond)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := runner.Run(ctx); err != nil {
			t.Error(err)
		}
	}()

	r.runner = waves.New(r.o) // does not run
	j, _ := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "job", j.State, record.JobSucceeded)
	cancel()
	<-gone
}

// TestGone: the Runner does not wait for an operation with removed results.
func TestGone(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})

	r.accepted = func() {
		for n := 1; n > 0; {
			var err error
			if n, err = r.store.Prune(t.Context(), time.Now().Add(time.Hour), 10); err != nil {
				t.Error(err)
			}
		}
	}

	r.run()
	_, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "tasks", states(tasks), "[p1_1 failed internal]")
}

// TestManyJobs: jobs do not wait for each other.
func TestManyJobs(t *testing.T) {
	r := newRig(t)
	for id := 1; id <= 12; id++ {
		r.process(id, topology.Row{Priority: id % 3, Set: id % 4, Module: id % 6})
	}

	r.open["p3_1@0:10.0.0.1"] = true
	r.run()
	slow := r.create(gozzard.ActionStart, "")
	r.until("the slow job does not begin", func() bool { return len(r.waves()) > 0 })
	r.mu.Lock()
	r.open = map[string]bool{}
	r.mu.Unlock()
	var wg sync.WaitGroup
	ids := make([]int64, 8)
	for i := range ids {
		wg.Go(func() {
			j, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz,
				Action: gozzard.ActionStart,
				Granularity: []record.Granularity{record.ByBusiness, record.BySet, record.ByModule,
					record.ByHost}[i%4]})
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}

	wg.Wait()

	for _, id := range ids {
		j, _ := r.finish(id)
		same(t, "job", j.State, record.JobSucceeded)
	}

	if j, err := r.runner.Job(t.Context(), caller, biz, slow.ID); err != nil || j.State != record.JobRunning {
		t.Fatalf("the slow job is %s, %v", j.State, err)
	}

	r.answer("p3_1@0:10.0.0.1")
	j, _ := r.finish(slow.ID)
	same(t, "job", j.State, record.JobSucceeded)
	total, list, err := r.runner.Jobs(t.Context(), caller, record.JobFilter{Biz: biz, Limit: 2})
	if err != nil || total != 9 || len(list) != 2 {
		t.Fatal(total, len(list), err)
	}
}
