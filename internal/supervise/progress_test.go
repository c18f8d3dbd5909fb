package supervise_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

// queueing is a host whose start commands wait for their turn, and that counts the looks meanwhile.
type queueing struct {
	*sim.Host
	queue   time.Duration
	waiting atomic.Int32 // start commands in the queue
	looks   atomic.Int32 // for a process, while its start command is in the queue
	started atomic.Int32
	program bool // it executes programs without a shell
}

func (h *queueing) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if r.Action != gozzard.ActionStart || r.Progress == nil {
		return h.Host.Run(ctx, r)
	}
	r.Progress(supervise.ProgressQueued)
	h.waiting.Add(1)
	time.Sleep(h.queue)
	h.waiting.Add(-1)
	h.started.Add(1)
	if h.program {
		r.Progress(supervise.ProgressProgram)
	} else {
		r.Progress(supervise.ProgressShell)
	}
	return h.Host.Run(ctx, r)
}

func (h *queueing) Find(q supervise.Query) (supervise.Found, error) {
	if q.Starting && h.waiting.Load() > 0 {
		h.looks.Add(1)
	}
	return h.Host.Find(q)
}

func TestNobodyLooksForWhatWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var host *queueing
		r := newRig(t, func(h *sim.Host) supervise.Host {
			host = &queueing{Host: h, queue: 500 * time.Millisecond}
			return host
		})
		r.up()
		defer r.down()
		r.want(gozzard.ActionStart, start("sleep 1s"), gozzard.CodeOK, true)
		if n := host.looks.Load(); n != 0 {
			t.Errorf("%d looks for a process whose command was not started", n)
		}
		if n := r.kinds(gozzard.EventStarted); len(n) != 1 {
			t.Errorf("events %+v", n)
		}
	})
}

// A command that is its program holds no place of a pull-up any more, and pull-ups that are due come before looks.
func TestStartsComeBeforeLooks(t *testing.T) {
	for _, program := range []bool{false, true} {
		t.Run(fmt.Sprint("program ", program), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var host *queueing
				r := newRig(t, func(h *sim.Host) supervise.Host {
					host = &queueing{Host: h, queue: 5 * time.Millisecond, program: program}
					return host
				})
				const n = 5 * supervise.MaxPullUps
				for i := range n {
					key := gozzard.Key{Namespace: "storm", Name: fmt.Sprint(i)}
					r.journal[key] = supervise.Record{Key: key, Spec: start("hang"), Hosted: true, Wanted: gozzard.StateRunning}
				}
				r.up()
				defer r.down()
				r.after(100 * time.Millisecond)
				if all := host.started.Load() == n; all != program {
					t.Errorf("%d of %d commands were started", host.started.Load(), n)
				}
			})
		})
	}
}
