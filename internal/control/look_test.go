package control_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// silentStore carries out a call and answers with an error, as a database does whose connection breaks after the commit.
type silentStore struct {
	control.Store

	mu                       sync.Mutex
	accept, dispatch, settle bool // the next one of these is not answered
	reads                    int  // so many reads of what is open fail
}

var errNoAnswer = errors.New("the connection is lost, and the result is not known")

// next takes a fault.
func (s *silentStore) next(fault *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !*fault {
		return nil
	}
	*fault = false
	return errNoAnswer
}

func (s *silentStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *silentStore) Accept(ctx context.Context, t *record.NewTask) (record.Accepted, error) {
	fault := s.next(&s.accept)
	if fault != nil {
		t.Committed = nil // the store does not know that it is committed
	}
	acc, err := s.Store.Accept(ctx, t)
	return acc, errors.Join(err, fault)
}

func (s *silentStore) Dispatch(ctx context.Context, rows []record.Dispatch) ([]bool, error) {
	fault := s.next(&s.dispatch)
	moved, err := s.Store.Dispatch(ctx, rows)
	return moved, errors.Join(err, fault)
}

func (s *silentStore) Settle(ctx context.Context, rows []record.Settlement) ([]bool, error) {
	fault := s.next(&s.settle)
	moved, err := s.Store.Settle(ctx, rows)
	return moved, errors.Join(err, fault)
}

func (s *silentStore) OpenOf(ctx context.Context, agents []gozzard.AgentID) ([]gozzard.Attempt, error) {
	s.mu.Lock()
	fails := s.reads > 0
	if fails {
		s.reads--
	}
	s.mu.Unlock()
	if fails {
		return nil, errNoAnswer
	}
	return s.Store.OpenOf(ctx, agents)
}

func newSilentRig(t *testing.T) (*rig, *silentStore) {
	silent := &silentStore{}
	r := &rig{t: t, lease: time.Minute, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	r.around = silent.around
	r.start()
	t.Cleanup(func() { r.stop() })
	return r, silent
}

func (s *silentStore) around(store *sqlstore.Store) control.Store {
	s.Store = store
	return s
}

// TestDispatchWithoutAnswer: an attempt that the record has as dispatched is sent, also if the home did not get the
// answer.
func TestDispatchWithoutAnswer(t *testing.T) {
	silent := &silentStore{}
	c := newCluster(t, time.Minute, "a")
	home := c.add("b", time.Minute, silent.around)
	home.hello(me, 1, journalA)
	c.awaitOnline("a", me, true)

	silent.set(func() { silent.dispatch = true })
	task := c.servers["a"].operate(gozzard.ActionReload, 0, me)
	home.report(me, 1, done(home.op(me, 1, task), gozzard.CodeOK))
	home.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	if silent.dispatch {
		t.Error("no answer was lost")
	}
}

// TestAcceptWithoutAnswer: a task that is in the record is carried out, also if the server did not get the answer.
func TestAcceptWithoutAnswer(t *testing.T) {
	r, silent := newSilentRig(t)
	r.hello(me, 1, journalA)
	r.untilReady(me, 1)

	silent.set(func() { silent.accept = true })
	_, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{{
		Action: gozzard.ActionReload, Key: key, Spec: spec(60),
		Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
	if !errors.Is(err, errNoAnswer) {
		t.Fatalf("the call was answered with %v", err)
	}
	tasks, err := r.store.TasksOf(t.Context(), caller.App, "", 0, 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%v, %v", tasks, err)
	}
	r.report(me, 1, done(r.op(me, 1, tasks[0]), gozzard.CodeOK))
	r.verdict(tasks[0], me, gozzard.AttemptOK, gozzard.CodeOK)
}

// TestPeersKeepOrder: operations on one process are sent in the order of their tasks, whichever server accepts them, and
// whichever wake-up is lost.
func TestPeersKeepOrder(t *testing.T) {
	for _, second := range []string{"a", "b"} {
		t.Run("second accepted by "+second, func(t *testing.T) {
			c := newCluster(t, time.Minute, "a", "b")
			home, other := c.servers["a"], c.servers["b"]
			home.hello(me, 1, journalA)
			home.untilReady(me, 1)
			c.awaitOnline("b", me, true)

			c.setLose(func(_, _ string, n *gozzard.PeerNews) bool { return len(n.Wake) > 0 })
			first := other.operate(gozzard.ActionReload, 0, me)
			c.setLose(nil)
			last := c.servers[second].operate(gozzard.ActionReload, 0, me)
			home.op(me, 1, last)

			var order []gozzard.TaskSeq
			for _, cmd := range home.commands(me, gozzard.CommandOperate) {
				for _, op := range cmd.Ops {
					order = append(order, op.Ref.Task)
				}
			}
			if order[0] != first.Seq {
				t.Errorf("the operations of tasks %v were sent, the first one is %d", order, first.Seq)
			}
		})
	}
}

// TestPeersHelloReadsAgain: a home that cannot read what is open, when an agent opens its session, reads it again.
func TestPeersHelloReadsAgain(t *testing.T) {
	silent := &silentStore{}
	c := newCluster(t, time.Minute, "a", "b")
	a := c.servers["a"]
	a.hello(me, 1, journalA)
	task := a.operate(gozzard.ActionReload, 0, me)
	a.op(me, 1, task)

	third := c.add("c", time.Minute, silent.around)
	silent.set(func() { silent.reads = 2 })
	third.hello(me, 2, journalA)
	third.report(me, 2, done(third.op(me, 2, task), gozzard.CodeOK))
	third.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
}
