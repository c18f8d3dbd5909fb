package sqlstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// together makes jobs of one kind share one transaction, in their order, and returns their answers.
func together(t *testing.T, s *Store, jobs ...*job) []error {
	t.Helper()
	release := occupy(t, s)
	var wg sync.WaitGroup
	results := make([]error, len(jobs))
	for i, j := range jobs {
		wg.Go(func() { results[i] = s.w.submit(t.Context(), j) })
		for len(s.w.queue) < i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	release()
	wg.Wait()
	return results
}

// smallTask is a job that accepts a task with one attempt and returns an error after that, or nil.
func smallTask(t *testing.T, agent string, fail error) (*acceptance, *job) {
	t.Helper()
	key := gozzard.Key{Namespace: "ns", Name: "p"}
	at := time.Unix(1_700_000_000, 0)
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "p"}}) // the same in all tasks
	a, err := newAcceptance(&record.NewTask{
		Task: gozzard.Task{At: at, Caller: gozzard.Caller{App: "app", User: "user"}, Targets: 1},
		Attempts: []gozzard.Attempt{{Op: gozzard.NewOpID(), Agent: gozzard.AgentID(agent), Key: key, Action: gozzard.ActionStart,
			Spec: spec, State: gozzard.AttemptPending, Deadline: at, Expires: at}},
		Register: []record.Process{{ID: gozzard.ProcID{Agent: gozzard.AgentID(agent), Key: key}, Spec: spec, RegisteredAt: at}},
		Audit:    gozzard.AuditRow{At: at, Caller: gozzard.Caller{App: "app", User: "user"}, Act: "start", Targets: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, &job{op: "a task", rows: 4, late: true, run: func(ctx context.Context, c *conn) error {
		if err := a.run(ctx, c); err != nil {
			return err
		}
		return fail
	}, after: a.committed}
}

// recorded checks that tasks are recorded under numbers that follow each other, each with its attempt, its process and its
// audit row, and that the chain of the audit is whole.
func recorded(t *testing.T, s *Store, tasks ...*acceptance) {
	t.Helper()
	for i, a := range tasks {
		if a.seq == 0 || i > 0 && a.seq != tasks[i-1].seq+1 {
			t.Errorf("task %d has the number %d", i, a.seq)
		}
		if _, err := s.Task(t.Context(), a.seq); err != nil {
			t.Error(err)
		}
		list, err := s.Attempts(t.Context(), a.seq)
		if err != nil || len(list) != 1 || list[0].Agent != a.t.Attempts[0].Agent || len(list[0].Spec) == 0 {
			t.Errorf("attempts of task %d: %+v, %v", a.seq, list, err)
		}
	}
	var processes int
	if err := s.read.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM processes`).Scan(&processes); err != nil || processes != len(tasks) {
		t.Errorf("%d processes for %d tasks, %v", processes, len(tasks), err)
	}

	rows, err := s.AuditAfter(t.Context(), 0, 1000)
	if err != nil || len(rows) != len(tasks) {
		t.Errorf("%d audit rows for %d tasks, %v", len(rows), len(tasks), err)
	}
	var hash gozzard.AuditHash
	for _, r := range rows {
		if hash = r.Chain(hash); r.Hash != hash {
			t.Errorf("audit row %d does not fit the one before it", r.Seq)
		}
	}
	if head, err := s.AuditHead(t.Context()); err != nil || head.Hash != hash || head.Seq != rows[len(rows)-1].Seq {
		t.Errorf("head of the audit %+v, %v", head, err)
	}
}

// Small tasks share the statements of their transaction. One that fails undoes only what it wrote itself, whether or not its
// rows, and those of the tasks before it, were written already.
func TestLedger(t *testing.T) {
	half := errors.New("half done")
	open := func(t *testing.T) *Store { return openNew(t, Options{}) }
	count := func(want int, fail error) *job {
		return &job{op: "a task", late: true, run: func(ctx context.Context, c *conn) error {
			var n int
			if _, err := c.one(ctx, `SELECT COUNT(*) FROM tasks`, nil, &n); err != nil {
				return err
			}
			if n != want {
				t.Errorf("a statement sees %d tasks, want %d", n, want)
			}
			return fail
		}}
	}

	t.Run("a task fails", func(t *testing.T) {
		s := open(t)
		a, one := smallTask(t, "a", nil)
		_, bad := smallTask(t, "b", half)
		c, two := smallTask(t, "c", nil)
		if got := together(t, s, one, bad, two); got[0] != nil || !errors.Is(got[1], half) || got[2] != nil {
			t.Fatalf("answers %v", got)
		}
		recorded(t, s, a, c)
	})

	t.Run("a job that reads fails", func(t *testing.T) {
		s := open(t)
		a, one := smallTask(t, "a", nil)
		c, two := smallTask(t, "c", nil)
		if got := together(t, s, one, count(1, half), count(1, nil), two, count(2, half)); got[0] != nil || !errors.Is(got[1], half) ||
			got[2] != nil || got[3] != nil || !errors.Is(got[4], half) {
			t.Fatalf("answers %v", got)
		}
		recorded(t, s, a, c)
	})

	t.Run("a row is at fault", func(t *testing.T) {
		s := open(t)
		a, one := smallTask(t, "a", nil)
		bad := &job{op: "a task", late: true, run: func(ctx context.Context, c *conn) error {
			row := []any{int64(1 << 40), "x", "app", "user", false, "", int64(0), 1, 0, ""}
			return errors.Join(c.later(ctx, insertTasks, row), c.later(ctx, insertTasks, row))
		}}
		c, two := smallTask(t, "c", nil)
		if got := together(t, s, one, bad, two); got[0] != nil || got[1] == nil || got[2] != nil {
			t.Fatalf("answers %v", got)
		}
		recorded(t, s, a, c)
	})

	t.Run("the same process twice", func(t *testing.T) {
		s := open(t)
		a, one := smallTask(t, "a", nil)
		b, again := smallTask(t, "a", nil)
		if got := together(t, s, one, again); errors.Join(got...) != nil {
			t.Fatal(got)
		}
		if a.seq+1 != b.seq {
			t.Errorf("numbers %d and %d", a.seq, b.seq)
		}
	})
}
