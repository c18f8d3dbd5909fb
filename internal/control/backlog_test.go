package control_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/gozzard/gozzard"
)

// TD2: while an app has more waiting to be sent than fits into deadlines, its calls are rejected and say when to try
// again. A repeated call gets its task, and another app is served.
func TestTD2BacklogOfAnApp(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	operate := func(app, key string, n int) (gozzard.Task, error) {
		op := &gozzard.Operation{Caller: caller, Door: "test", IdempotencyKey: key, RequestHash: sha256.Sum256([]byte(key))}
		op.Caller.App = app
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			op.Items = append(op.Items, gozzard.Item{Action: gozzard.ActionStart, Spec: spec(60),
				Key: gozzard.Key{Namespace: "ns-" + app, Name: name}, Targets: []gozzard.Target{{Agent: me, ResultKey: name}}})
		}
		return r.plane.Operate(t.Context(), op)
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
