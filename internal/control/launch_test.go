package control_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// lateStore commits or answers an Accept late, when the test says so.
type lateStore struct {
	control.Store

	mu        sync.Mutex
	late      bool // the next Accept is answered long after it was committed
	slow      bool // the next Accept is committed late
	committed chan struct{}
	answer    chan struct{}
}

// Accept commits at once unless it is slow.
func (s *lateStore) Accept(ctx context.Context, t *record.NewTask) (record.Accepted, error) {
	s.mu.Lock()
	late, slow := s.late, s.slow
	s.late, s.slow = false, false
	s.mu.Unlock()

	if slow {
		close(s.committed)
		<-s.answer
	}
	acc, err := s.Store.Accept(ctx, t)
	if late {
		close(s.committed)
		<-s.answer
	}
	return acc, err
}

func newLateRig(t *testing.T) (*rig, *lateStore) {
	late := &lateStore{committed: make(chan struct{}), answer: make(chan struct{})}
	r := &rig{t: t, lease: time.Minute, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.around = func(s *sqlstore.Store) control.Store {
		late.Store = s
		return late
	}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r, late
}

// untilReady waits until operations on a host are recorded as dispatched from the start.
func (r *rig) untilReady(agent gozzard.AgentID, session uint64) {
	r.t.Helper()
	r.until("the session does not become ready", func() bool {
		task := r.operate(gozzard.ActionReload, 0, agent)
		res, err := r.plane.Results(r.t.Context(), caller, task.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		ready := res.Attempts[0].State == gozzard.AttemptDispatched
		r.report(agent, session, done(r.op(agent, session, task), gozzard.CodeOK))
		r.verdict(task, agent, gozzard.AttemptOK, gozzard.CodeOK)
		return ready
	})
	r.forget()
}

// Tasks are launched in the order of the record, not in the order in which their callers get the answer. So a process
// gets its operations in the order of their tasks.
func TestTasksAreLaunchedInTheOrderOfTheirNumbers(t *testing.T) {
	r, late := newLateRig(t)
	r.hello(me, 1, journalA)
	r.untilReady(me, 1)
	late.late = true

	var first gozzard.Task
	var wg sync.WaitGroup
	wg.Go(func() { first = r.operate(gozzard.ActionReload, 0, me) })
	<-late.committed
	second := r.operate(gozzard.ActionReload, 0, me) // accepted behind the first, answered before it
	r.op(me, 1, second)
	close(late.answer)
	wg.Wait()

	if first.Seq >= second.Seq {
		t.Fatalf("the first task is %d, the second %d", first.Seq, second.Seq)
	}

	var order []gozzard.TaskSeq
	for _, c := range r.commands(me, gozzard.CommandOperate) {
		for _, op := range c.Ops {
			if !slices.Contains(order, op.Ref.Task) { // not a repeat
				order = append(order, op.Ref.Task)
			}
		}
	}
	if want := []gozzard.TaskSeq{first.Seq, second.Seq}; !slices.Equal(order, want) {
		t.Errorf("sent in the order %v, want %v", order, want)
	}
}

// A HELLO may requeue an attempt whose task is committed and not launched yet. The attempt must be sent all the same.
func TestRequeueBeforeTheLaunch(t *testing.T) {
	r, late := newLateRig(t)
	r.hello(me, 1, journalA)
	r.untilReady(me, 1)
	late.late = true

	var task gozzard.Task
	var wg sync.WaitGroup
	wg.Go(func() { task = r.operate(gozzard.ActionReload, 0, me) })
	<-late.committed
	r.hello(me, 2, journalA)
	r.until("the attempt is not sent in the new session", func() bool {
		return slices.ContainsFunc(r.commands(me, gozzard.CommandOperate),
			func(c *gozzard.Command) bool { return c.Session == 2 })
	})
	close(late.answer)
	wg.Wait()

	r.report(me, 2, done(r.op(me, 2, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
}

// A server that stops while it accepts tasks loses no task that it confirmed to a caller, and the stop ends.
func TestStopWhileAccepting(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	var mu sync.Mutex
	var accepted []gozzard.TaskID
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				task, err := r.plane.Operate(context.Background(), &gozzard.Operation{Caller: caller,
					Items: []gozzard.Item{{Action: gozzard.ActionReload, Key: key, Spec: spec(60),
						Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
				if err != nil {
					return // the store is closed
				}
				mu.Lock()
				accepted = append(accepted, task.ID)
				mu.Unlock()
			}
		})
	}

	r.until("nothing is accepted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(accepted) > 50
	})
	r.stop()
	wg.Wait()
	r.start()

	for _, id := range accepted {
		if _, err := r.plane.Results(t.Context(), caller, id); err != nil {
			t.Fatalf("task %s was accepted and is lost: %v", id, err)
		}
	}
}
