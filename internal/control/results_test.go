package control_test

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// readStore counts the reads of attempts.
type readStore struct {
	control.Store
	reads atomic.Int64
}

// Attempts counts.
func (s *readStore) Attempts(ctx context.Context, seq gozzard.TaskSeq) ([]gozzard.Attempt, error) {
	s.reads.Add(1)
	return s.Store.Attempts(ctx, seq)
}

// Polls of a large task get what the record has at every moment, and read it a few times only. What a poll got does not
// change later.
func TestPollsOfALargeTask(t *testing.T) {
	const targets, polls = 3000, 60
	r := newRig(t)
	r.stop()
	counted := &readStore{}
	r.around = func(s *sqlstore.Store) control.Store {
		counted.Store = s
		return counted
	}
	r.start()
	r.hello(me, 1, journalA)
	r.untilReady(me, 1)
	task, err := r.plane.Operate(t.Context(), largeOperation("app", "", targets))
	if err != nil {
		t.Fatal(err)
	}

	poll := func() []gozzard.Attempt {
		t.Helper()
		res, err := r.plane.Results(t.Context(), caller, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		return res.Attempts
	}
	first := poll()
	open := countOpen(first)
	if len(first) != targets || open != targets {
		t.Fatalf("%d attempts, %d open", len(first), open)
	}

	// The agent reports in parts, with polls between. Each poll has what was reported before it.
	for i := range polls {
		part := first[i*targets/polls : (i+1)*targets/polls]
		var reports []gozzard.OpReport
		for _, a := range part {
			reports = append(reports, done(gozzard.Op{ID: a.Op, Ref: a.Ref}, gozzard.CodeOK))
		}
		r.report(me, 1, reports...)
		r.until("a poll does not have what is recorded", func() bool { return countOpen(poll()) <= targets-len(part)*(i+1) })
	}
	if n := countOpen(first); n != open {
		t.Errorf("the first poll changed: %d open", n)
	}

	// In the end they have what the record has, and another caller nothing.
	fromRecord, err := r.store.Attempts(t.Context(), task.Seq)
	if err != nil {
		t.Fatal(err)
	}
	if got := poll(); !reflect.DeepEqual(got, fromRecord) {
		t.Errorf("polls have %+v, the record %+v", got[0], fromRecord[0])
	}
	if _, err := r.plane.Results(t.Context(), gozzard.Caller{App: "b", Rights: gozzard.Everything()}, task.ID); err == nil {
		t.Error("another app reads the task")
	}
	if n := counted.reads.Load(); n > polls/2 {
		t.Errorf("%d reads of the record", n)
	}
}

func countOpen(list []gozzard.Attempt) (n int) {
	for i := range list {
		if !list[i].State.Final() {
			n++
		}
	}
	return n
}
