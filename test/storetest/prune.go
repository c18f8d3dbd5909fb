package storetest

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

// finished records a task of an age with final attempts.
func finished(t *testing.T, s control.Store, age time.Duration, key string, list []gozzard.Attempt) *record.NewTask {
	t.Helper()
	for i := range list {
		list[i].State = gozzard.AttemptOK
	}
	n := newTask(list)
	n.Task.At, n.IdempotencyKey = start.Add(-age), key
	_, err := s.Accept(t.Context(), n)
	must(t, err)
	return n
}

func prune(t *testing.T, s control.Store) {
	old := finished(t, s, 3*time.Hour, "old", attempts(2))
	older := finished(t, s, 4*time.Hour, "older", attempts(2))
	oldest := finished(t, s, 5*time.Hour, "", nil)
	fresh := finished(t, s, time.Minute, "fresh", attempts(1))
	open := newTask(attempts(3))
	open.Task.At = start.Add(-9 * time.Hour)
	for i, state := range []gozzard.AttemptState{gozzard.AttemptOK, gozzard.AttemptUnknown, gozzard.AttemptOK} {
		open.Attempts[i].State = state
	}
	_, err := s.Accept(t.Context(), open)
	must(t, err)

	step := func(limit, want int) {
		t.Helper()
		n, err := s.Prune(t.Context(), start.Add(-time.Hour), limit)
		must(t, err)
		equal(t, "pruned", n, want)
	}

	there := func(n *record.NewTask, want bool) {
		t.Helper()
		_, err := s.Task(t.Context(), n.Task.Seq)
		list, err2 := s.Attempts(t.Context(), n.Task.Seq)
		if want {
			must(t, err)
			must(t, err2)
			equal(t, "attempts", list, n.Attempts)
			return
		}
		wantKind(t, err, gozzard.ErrNotFound)
		wantKind(t, err2, gozzard.ErrNotFound)
	}

	step(0, 0)
	step(2, 2)
	there(oldest, false)
	there(older, false)
	there(old, true)
	step(2, 1)
	step(2, 0)
	there(old, false)
	there(fresh, true)
	there(open, true)

	again := newTask(attempts(1))
	again.IdempotencyKey = "old"
	acc, err := s.Accept(t.Context(), again)
	must(t, err)
	equal(t, "the key of a pruned task is known", acc.Known, false)
	rows, err := s.Audit(t.Context(), 100)
	must(t, err)
	equal(t, "audit rows: one of each task, and one of the verdicts of each finished task with attempts", len(rows), 6+3)

	settle(t, s, []bool{true}, settlement(open.Attempts[1], gozzard.AttemptInterrupted))
	step(10, 1)
	there(open, false)
}

func pruneLarge(t *testing.T, s control.Store) {
	big := finished(t, s, 2*time.Hour, "", attempts(2600))

	for i := range 30 {
		list := attempts(1)
		list[0].Spec = spec(string(rune('a' + i)))
		finished(t, s, 2*time.Hour, "", list)
	}

	keep := finished(t, s, time.Minute, "", attempts(1)) // uses the same definition as big
	p := process("a", "ns", "kept")
	p.Spec = spec("a")
	register(t, s, p)
	n, total := 1, 0
	for n > 0 {
		var err error
		n, err = s.Prune(t.Context(), start.Add(-time.Hour), 10)
		must(t, err)
		total += n
	}

	equal(t, "pruned", total, 31)
	_, err := s.Attempts(t.Context(), big.Task.Seq)
	wantKind(t, err, gozzard.ErrNotFound)
	got, err := s.Attempts(t.Context(), keep.Task.Seq)
	must(t, err)
	equal(t, "attempts that stay", got, keep.Attempts)
	equal(t, "processes that stay", processes(t, s, nil), []record.Process{p})
}

func notFound(t *testing.T, s control.Store) {
	for _, seq := range []gozzard.TaskSeq{-1, 0, 1, 1 << 60} {
		_, err := s.Task(t.Context(), seq)
		wantKind(t, err, gozzard.ErrNotFound)
		_, err = s.Attempts(t.Context(), seq)
		wantKind(t, err, gozzard.ErrNotFound)
	}
}
