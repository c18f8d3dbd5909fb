package control_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// TestExpectedDefinitionAgain: a request that comes again with its idempotency key gets its task, although the definition
// is now the one that it brought.
func TestExpectedDefinitionAgain(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	update := func(id string, expect []string) (gozzard.Task, error) {
		return r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Expect: expect, IdempotencyKey: id,
			Items: []gozzard.Item{{Action: gozzard.ActionUpdate, Key: key, Spec: spec(60),
				Targets: []gozzard.Target{{Agent: me}}}}})
	}

	first, err := update("once", []string{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := update("once", []string{})
	if err != nil || again.ID != first.ID {
		t.Errorf("the same request again: task %s, %v; want %s", again.ID, err, first.ID)
	}
	if _, err := update("twice", []string{}); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Error("another request:", err)
	}
}

// TestExpectedDefinition: of two callers that read one definition and replace it, the second gets a conflict. A caller that
// expects nothing replaces everything.
func TestExpectedDefinition(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	update := func(timeout int, expect []string, labels map[string]string) error {
		_, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Expect: expect,
			Items: []gozzard.Item{{Action: gozzard.ActionUpdate, Key: key, Spec: spec(timeout), Labels: labels,
				Targets: []gozzard.Target{{Agent: me}}}}})
		return err
	}
	digest := func() string {
		t.Helper()
		_, list, err := r.plane.Definitions(t.Context(), caller, fleet.Filter{}, 0, 10)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Digest()
	}

	if err := update(60, []string{}, nil); err != nil {
		t.Fatal("a new definition:", err)
	}
	first := digest()
	if err := update(61, []string{}, nil); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Error("a definition that should be new:", err)
	}
	if err := update(61, []string{first}, nil); err != nil {
		t.Error("the first editor:", err)
	}
	if err := update(62, []string{first}, nil); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Error("the second editor:", err)
	}
	second := digest()
	if err := update(61, nil, map[string]string{"tier": "front"}); err != nil {
		t.Error("a caller that expects nothing:", err)
	}
	if err := update(63, []string{second}, nil); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Error("labels changed:", err)
	}
}
