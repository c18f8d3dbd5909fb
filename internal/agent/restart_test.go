package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/policy"
)

// restarts counts restarts, and ends the run of the agent as a program that takes over does.
type restarts struct {
	mu  sync.Mutex
	n   int
	err error
	end func()
}

func (f *restarts) Check(context.Context) error { return f.err }

func (f *restarts) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	f.end()
}

func (f *restarts) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// restartable is a rig whose agent can restart.
func restartable(t *testing.T) (*rig, *restarts) {
	r := newRig(t)
	f := &restarts{end: func() { r.cancel() }}
	r.o.Restart, r.o.Info.Version = f, "1.2.3"
	r.start()
	r.connect()
	return r, f
}

// again starts the next run after a restart.
func (r *rig) again() {
	r.t.Helper()
	if err := <-r.ended; err != nil {
		r.t.Fatalf("Run: %v", err)
	}
	r.cancel = nil
	r.forget()
	r.start()
	r.connect()
}

func (r *rig) restartOp(s gozzard.RestartSpec) gozzard.Op {
	o := r.op(gozzard.ActionRestartAgent, "")
	o.Key, o.Spec = gozzard.AgentKey(), gozzard.EncodeSpec(&gozzard.Spec{Restart: &s})
	return o
}

// resultOf is what the newest HELLO or results say about an operation.
func (r *rig) resultOf(id gozzard.OpID) gozzard.OpReport {
	r.t.Helper()
	for _, o := range r.hello().Hello.Open {
		if o.ID == id {
			return o
		}
	}
	return r.last(id)
}

// TestTT17RestartOnce: an order restarts the agent once, whatever arrives again: before its verdict is acknowledged, after
// that, in the session of the order and in a new one.
func TestTT17RestartOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := restartable(t)
		op, before := r.restartOp(gozzard.RestartSpec{Wait: 5, Remark: "why"}), r.session
		r.do(op)
		if f.count() != 1 {
			t.Fatalf("%d restarts: %v", f.count(), phases(r.said(op.ID)))
		}

		r.again()
		if v := r.resultOf(op.ID); v.Phase != gozzard.PhaseDone || v.Outcome.Code != gozzard.CodeOK ||
			v.Outcome.Message != "the agent restarted and runs version 1.2.3" {
			t.Fatalf("verdict: %+v", v)
		}

		r.send(before, op)
		r.do(op)
		pass(time.Minute)
		r.ack(op.ID)
		r.send(before, op)
		r.do(op)
		pass(time.Minute)
		if f.count() != 1 {
			t.Errorf("%d restarts by one order", f.count())
		}
		if v := r.last(op.ID); v.Phase != gozzard.PhaseNever || v.Outcome.Code != gozzard.CodeSuperseded {
			t.Errorf("the order after its acknowledgement: %+v", v)
		}

		next := r.restartOp(gozzard.RestartSpec{})
		r.do(next)
		if f.count() != 2 {
			t.Errorf("another order: %d restarts, %+v", f.count(), r.last(next.ID))
		}
		r.again()
	})
}

// TestRestartWaitsForOperations: a restart waits for what is in progress, and rejects after its time. With force the operation
// is interrupted, and both verdicts say the truth.
func TestRestartWaitsForOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := restartable(t)
		slow := r.op(gozzard.ActionStart, "sleep 10s")
		r.do(slow)

		early := r.restartOp(gozzard.RestartSpec{Wait: 3})
		r.do(early)
		pass(5 * time.Second)
		if v := r.last(early.ID); f.count() != 0 || v.Outcome.Code != gozzard.CodeBusy || v.Phase != gozzard.PhaseNever ||
			!strings.Contains(v.Outcome.Message, "1 operations are still in progress on this host after 3 seconds") {
			t.Fatalf("%d restarts, %+v", f.count(), v)
		}

		patient := r.restartOp(gozzard.RestartSpec{Wait: 60})
		r.do(patient)
		pass(time.Minute)
		if v := r.last(slow.ID); v.Outcome.Code != gozzard.CodeOK || f.count() != 1 {
			t.Fatalf("%d restarts, the operation: %+v", f.count(), v)
		}
		r.again()
		if v := r.resultOf(patient.ID); v.Outcome.Code != gozzard.CodeOK {
			t.Errorf("%+v", v)
		}

		cut := r.op(gozzard.ActionRestart, "sleep 10s")
		r.do(cut)
		forced := r.restartOp(gozzard.RestartSpec{Wait: 60, Force: true})
		r.do(forced)
		if f.count() != 2 {
			t.Fatalf("with force: %d restarts", f.count())
		}
		late := r.op(gozzard.ActionStop, "")
		r.do(late) // is left to the next run
		r.again()
		if v := r.resultOf(forced.ID); v.Outcome.Code != gozzard.CodeOK {
			t.Errorf("the forced restart: %+v", v)
		}
		if v := r.resultOf(cut.ID); v.Phase != gozzard.PhaseInterrupted {
			t.Errorf("the operation that was interrupted: %+v", v)
		}
		if v := r.resultOf(late.ID); v.Phase != gozzard.PhaseAbsent {
			t.Errorf("the operation that came late: %+v", v)
		}
	})
}

// TestRestartIsRejected: what cannot succeed, and what the policy forbids, leaves the agent as it is.
func TestRestartIsRejected(t *testing.T) {
	forbidden, err := policy.Parse("p.yaml", []byte("agent_restart: false\n"))
	must(t, err)

	for name, c := range map[string]struct {
		spec  gozzard.RestartSpec
		check error
		rules *policy.Policy
		want  string
	}{
		"another version": {gozzard.RestartSpec{Version: "1.0.0"}, nil, nil,
			"the agent has version 1.2.3, and the restart is for version 1.0.0"},
		"broken program": {gozzard.RestartSpec{}, errors.New("no such program"), nil, "no such program"},
		"policy": {gozzard.RestartSpec{}, nil, forbidden, "permission: operation restart-agent is not allowed by local policy " +
			"(agent_restart in p.yaml); to allow it, the owner of the host writes into this file: agent_restart: true"},
		"invalid": {gozzard.RestartSpec{Wait: 1 << 20}, nil, nil, "wait must be 0 to 3600 seconds, is 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f := restartable(t)
				r.stop()
				f.err = c.check
				if c.rules != nil {
					r.o.Policy = &policy.Reach{Rules: c.rules}
				}
				r.start()
				r.connect()

				op := r.restartOp(c.spec)
				r.do(op)
				pass(time.Minute)
				v := r.last(op.ID)
				if f.count() != 0 || v.Phase != gozzard.PhaseNever || v.Outcome.Code != gozzard.CodeRefused ||
					v.Outcome.Message != c.want || v.Outcome.Policy != (c.rules != nil) {
					t.Errorf("%d restarts, %+v", f.count(), v)
				}
			})
		})
	}

	t.Run("no program", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := online(t)
			op, bad := r.restartOp(gozzard.RestartSpec{}), r.restartOp(gozzard.RestartSpec{})
			bad.Spec = nil
			r.do(op, bad)
			pass(time.Minute) // one waits for the other
			if v := r.last(op.ID); v.Outcome.Message != "this agent cannot restart itself" {
				t.Errorf("%+v", v)
			}
			if v := r.last(bad.ID); !strings.Contains(v.Outcome.Message, "does not say how to restart") {
				t.Errorf("%+v", v)
			}
		})
	})
}
