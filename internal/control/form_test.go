package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestOldAgentGetsNoDefinitionThatItWouldIgnore: an agent of an earlier version ignores the environment of a definition and
// would start the process without it. It gets definitions that it knows.
func TestOldAgentGetsNoDefinitionThatItWouldIgnore(t *testing.T) {
	r := newRigWith(t, time.Minute)
	r.hello(me, 1, journalA)
	start := func(s *gozzard.Spec) gozzard.Task {
		t.Helper()
		task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{{
			Action: gozzard.ActionStart, Key: key, Spec: s, Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}

	modern := spec(60)
	modern.Exec.Env, modern.After = map[string]string{"A": "1"}, []string{"b"}
	a := r.verdict(start(modern), me, gozzard.AttemptNotExecuted, gozzard.CodeRefused)
	if want := "does not know env, after: upgrade the agent"; !strings.Contains(a.Outcome.Message, want) {
		t.Errorf("%q, want %q", a.Outcome.Message, want)
	}

	r.op(me, 1, start(spec(60)))
}
