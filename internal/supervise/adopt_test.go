package supervise_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// adopt starts a process in the way of our own doors.
func (r *rig) adopt(spec []byte) gozzard.Outcome {
	r.t.Helper()
	done := make(chan gozzard.Outcome, 1)
	r.s.Apply(supervise.Op{
		ID: gozzard.NewOpID(), Action: gozzard.ActionStart, Key: game, Spec: spec, Adopt: true,
		Begin: func() error { return nil },
		Done: func(out gozzard.Outcome, rec *supervise.Record, _ bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if rec != nil {
				r.journal[game] = *rec
			}
			done <- out
		},
	})
	return <-done
}

// TestStartOfARunningProcess: a start finds a process that runs and is not supervised. Without Adopt it changes nothing
// and says so. With Adopt the process is supervised from then on.
func TestStartOfARunningProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false)

		out := r.want(gozzard.ActionStart, definition(nil), gozzard.CodeAlreadyRunning, false)
		if out.Message != "already running: bash; it is not supervised: when it ends, it is not started again" {
			t.Errorf("without Adopt: %q", out.Message)
		}

		out = r.adopt(nil)
		if out.Code != gozzard.CodeAlreadyRunning || !out.Hosted ||
			out.Message != "already running: bash; it is supervised from now on" {
			t.Errorf("with Adopt: %+v", out)
		}
		if rec := r.record(); !rec.Hosted || rec.Wanted != gozzard.StateRunning {
			t.Errorf("the journal has %+v", rec)
		}

		out = r.adopt(nil)
		if out.Message != "already running: bash" || !out.Hosted {
			t.Errorf("with Adopt, once more: %+v", out)
		}
		if n := r.machine.Commands(game, gozzard.ActionStart); n != 1 {
			t.Errorf("start_cmd ran %d times", n)
		}

		r.end(supervise.Exit{})
		r.after(time.Minute)
		r.alive(1)
	})
}
