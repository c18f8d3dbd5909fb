package control_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestAdoptReachesTheAgent: a start that adopts what runs carries that to the agent, also when the server was started
// again in between. The record then has the process as supervised. Other actions, and starts of callers that do not ask
// for it, do not carry it.
func TestAdoptReachesTheAgent(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)
	operate := func(action gozzard.Action, adopt bool) gozzard.Task {
		t.Helper()
		task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Adopt: adopt,
			WaitOffline: time.Minute, Items: []gozzard.Item{{Action: action, Key: key, Spec: spec(60),
				Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}

	// Only a start that asks for it carries it.
	for _, tt := range []struct {
		action      gozzard.Action
		adopt, want bool
	}{{gozzard.ActionStart, false, false}, {gozzard.ActionReload, true, false}, {gozzard.ActionStart, true, true}} {
		op := r.op(me, 1, operate(tt.action, tt.adopt))
		if op.Adopt != tt.want {
			t.Errorf("%s with adopt %v is sent with %v", tt.action, tt.adopt, op.Adopt)
		}
		r.report(me, 1, done(op, gozzard.CodeOK))
	}

	// It survives a restart of the server.
	r.until("the lease does not end", func() bool {
		h, _ := r.plane.Resolve(caller, gozzard.Target{Agent: me})
		return !h.Online
	})
	stop := operate(gozzard.ActionUnhost, false)
	r.stop()
	r.start()
	task := operate(gozzard.ActionStart, true)
	r.stop()
	r.start()
	r.hello(me, 2, journalA)
	r.verdict(stop, me, gozzard.AttemptNotExecuted, gozzard.CodeSuperseded)
	op := r.op(me, 2, task)
	if !op.Adopt {
		t.Error("the flag is lost with the server")
	}

	// The verdict makes the process a supervised one in the record.
	rep := done(op, gozzard.CodeAlreadyRunning)
	rep.Outcome.Hosted = true
	r.report(me, 2, rep)
	r.verdict(task, me, gozzard.AttemptFailed, gozzard.CodeAlreadyRunning)
	for rec, err := range r.store.Processes(t.Context(), nil) {
		if err != nil || !rec.Hosted || rec.Wanted != gozzard.StateRunning {
			t.Errorf("the record has %+v, %v", rec, err)
		}
	}
}
