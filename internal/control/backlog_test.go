package control_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TD2: while an app has more waiting to be sent than fits into deadlines, its calls are rejected and say when to try
// again. A repeated call gets its task, and another app is served.
func TestTD2BacklogOfAnApp(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	operate := func(app, key string, n int) (gozzard.Task, error) {
		return r.plane.Operate(t.Context(), largeOperation(app, key, n))
	}

	large, err := operate("a", "large", 30_000) // however large: nothing waits yet
	if err != nil {
		t.Fatal(err)
	}

	_, err = operate("a", "next", 1)
	var e *gozzard.Error
	if !errors.As(err, &e) || e.Kind != gozzard.ErrRateLimited || e.Retry <= 0 || gozzard.RetryAfter(err) == "" {
		t.Errorf("with 30,000 waiting: %v", err)
	}
	if _, counted := r.refused.Load("backlog"); !counted {
		t.Error("the rejection is not counted")
	}

	if again, err := operate("a", "large", 30_000); err != nil || again.Seq != large.Seq {
		t.Errorf("a repeated call: task %d, %v; the first was %d", again.Seq, err, large.Seq)
	}
	if _, err := operate("b", "", 1); err != nil {
		t.Errorf("another app: %v", err)
	}
}

// largeOperation starts n processes of a host. Those of different calls are different ones.
func largeOperation(app, key string, n int) *gozzard.Operation {
	op := &gozzard.Operation{Caller: caller, Door: "test", IdempotencyKey: key, RequestHash: sha256.Sum256([]byte(key))}
	op.Caller.App = app
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		op.Items = append(op.Items, gozzard.Item{Action: gozzard.ActionStart, Spec: spec(60),
			Key: gozzard.Key{Namespace: "ns-" + app, Name: name}, Targets: []gozzard.Target{{Agent: me, ResultKey: name}}})
	}
	return op
}

// TD2: of a hundred callers that come at the same moment, only as many are admitted as fit into deadlines, and the others
// are rejected before they cost anything. When nothing of the app waits any more, its calls are admitted again.
func TestTD2HundredCallersAtOnce(t *testing.T) {
	const callers, targets = 100, 1000
	const fit = 21 // 2000 a second in 10 seconds; the one that goes above that is the last
	r := newRig(t)
	gate := &gateStore{open: make(chan struct{})}
	r.stop()
	r.around = func(s *sqlstore.Store) control.Store {
		gate.Store = s
		return gate
	}
	r.start()
	r.hello(me, 1, journalA)
	r.untilReady(me, 1)
	gate.closed.Store(true)

	// No task is recorded while they come, so none of those that are admitted makes room.
	answers := make(chan error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		op := largeOperation("a", fmt.Sprint("call ", i), targets)
		wg.Go(func() {
			_, err := r.plane.Operate(t.Context(), op)
			answers <- err
		})
	}
	for range callers - fit {
		if err := <-answers; gozzard.KindOf(err) != gozzard.ErrRateLimited {
			t.Errorf("a caller while %d wait: %v", fit, err)
		}
	}

	// The others are recorded.
	gate.closed.Store(false)
	close(gate.open)
	wg.Wait()
	close(answers)
	admitted := 0
	for err := range answers {
		switch {
		case err == nil:
			admitted++
		case gozzard.KindOf(err) != gozzard.ErrRateLimited:
			t.Errorf("an admitted caller: %v", err)
		}
	}
	if admitted == 0 || admitted > fit {
		t.Errorf("%d callers were admitted, want %d", admitted, fit)
	}

	// A call that is rejected for another reason leaves the queue.
	if _, err := r.plane.Operate(t.Context(), largeOperation("b", "", record.MaxTargets+1)); gozzard.KindOf(err) != gozzard.ErrInvalid {
		t.Errorf("a call with too many targets: %v", err)
	}
	if _, err := r.plane.Operate(t.Context(), largeOperation("b", "", 1)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// gateStore records tasks when its gate is open.
type gateStore struct {
	control.Store
	closed atomic.Bool
	open   chan struct{}
}

// Accept waits at the gate.
func (s *gateStore) Accept(ctx context.Context, t *record.NewTask) (record.Accepted, error) {
	if s.closed.Load() {
		<-s.open
	}
	return s.Store.Accept(ctx, t)
}
