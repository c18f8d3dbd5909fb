package control_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestRejectedDefinition: a definition that a host rejects leaves the record, also if the operation began. A process that
// the host never took is not listed any more. One that it has keeps its definition.
func TestRejectedDefinition(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	recorded := func() (specs [][]byte) {
		for rec, err := range r.store.Processes(t.Context(), []gozzard.ProcID{{Agent: me, Key: key}}) {
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, rec.Spec)
		}
		return specs
	}
	reject := func(budget int, phase gozzard.Phase, state gozzard.AttemptState) {
		t.Helper()
		task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{
			{Action: gozzard.ActionStart, Key: key, Spec: spec(budget),
				Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		res := done(r.op(me, 1, task), gozzard.CodeRefused)
		res.Phase = phase
		r.report(me, 1, res)
		r.verdict(task, me, state, gozzard.CodeRefused)
	}

	listed := func() bool {
		n, _ := r.plane.Page(caller, key.Namespace, 0, 10)
		return n > 0
	}
	for phase, state := range map[gozzard.Phase]gozzard.AttemptState{gozzard.PhaseNever: gozzard.AttemptNotExecuted,
		gozzard.PhaseDone: gozzard.AttemptFailed} {
		reject(7, phase, state)
		if got := recorded(); len(got) != 0 {
			t.Errorf("phase %v: recorded: %s", phase, got)
		}
		r.until("it is still listed", func() bool { return !listed() })
	}

	task := r.operate(gozzard.ActionStart, time.Minute, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	before := recorded()
	reject(9, gozzard.PhaseNever, gozzard.AttemptNotExecuted)
	reject(9, gozzard.PhaseDone, gozzard.AttemptFailed)
	if got := recorded(); len(before) != 1 || len(got) != 1 || string(got[0]) != string(before[0]) {
		t.Errorf("recorded: %s, before: %s", got, before)
	}
	if !listed() {
		t.Error("it is not listed any more")
	}
}
