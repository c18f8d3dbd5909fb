package waves_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/waves"
)

// claim takes the lease of jobs for a server, from another one.
func (r *rig) claim(holder string) lease.Fence {
	r.t.Helper()
	got, err := r.store.ClaimLeases(r.t.Context(), holder, []string{"jobs"}, nil, -time.Second)
	if err != nil || len(got) != 1 {
		r.t.Fatalf("%s has no lease: %+v, %v", holder, got, err)
	}
	return got[0].Fence
}

// serve runs jobs as a server that believes to have a lease.
func (r *rig) serve(f lease.Fence) (runner *waves.Runner, log func() string) {
	var mu sync.Mutex
	var text bytes.Buffer
	o := r.o
	o.Shared = true
	o.Log = slog.New(slog.NewTextHandler(lockedWriter{&mu, &text}, nil))
	runner = waves.New(o)
	runner.LookEvery(5 * time.Millisecond)
	ctx, cancel := context.WithCancel(lease.WithFence(context.Background(), f))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if err := runner.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	r.t.Cleanup(func() { cancel(); <-gone })
	return runner, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// TestLateServer: a server is frozen between two waves of a job, and another one goes on with it. When the first wakes up,
// it sees the same verdicts and wants to do the same, and none of it is recorded: each wave is sent once.
func TestLateServer(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{Priority: 1})
	r.process(2, topology.Row{Priority: 2})
	r.open["p1_1@0:10.0.0.1"] = true

	// The first server sends the first wave.
	r.runner, _ = r.serve(r.claim("a"))
	late := r.runner
	j := r.create(gozzard.ActionStart, "")
	r.until("the first wave is not sent", func() bool { return len(r.waves()) == 1 })

	// The second one takes over, and both see the verdict.
	_, log := r.serve(r.claim("b"))
	r.answer("p1_1@0:10.0.0.1")
	end, tasks := r.finish(j.ID)
	same(t, "job", end.State, record.JobSucceeded)
	same(t, "tasks", states(tasks), "[p1_1 succeeded p2_1 succeeded]")
	same(t, "waves", strings.Join(r.waves(), ", "), "p1_1@0:10.0.0.1, p2_1@0:10.0.0.1")

	// A job that a caller creates at the late server is done by the other one.
	r.runner = late
	r.mu.Lock()
	clear(r.open)
	r.mu.Unlock()
	end, _ = r.finish(r.create(gozzard.ActionStop, "").ID)
	same(t, "job", end.State, record.JobSucceeded)
	if strings.Contains(log(), "level=ERROR") || !strings.Contains(log(), "job ended") {
		t.Errorf("the log of the holder:\n%s", log())
	}
}

// TestLateServerSendsNothing: a server without its lease finds an open job, and can neither send nor change anything.
func TestLateServerSendsNothing(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	r.runner = waves.New(r.o) // does not run
	j := r.create(gozzard.ActionStart, "")

	late := r.claim("a")
	r.claim("b")
	_, log := r.serve(late)
	r.until("the late server does nothing", func() bool { return strings.Contains(log(), "another server does this work") })
	got, err := r.store.Job(t.Context(), biz, j.ID)
	if err != nil || got.State != record.JobPending || len(r.waves()) > 0 {
		t.Errorf("job %s, waves %v, %v", got.State, r.waves(), err)
	}
}

// TestRunAgain: a Runner that lost its lease and has it again takes up what is open, and forgets what it knew.
func TestRunAgain(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	r.open["p1_1@0:10.0.0.1"] = true
	runner := waves.New(r.o)
	r.runner = runner
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { defer close(gone); _ = runner.Run(ctx) }()
		if len(r.waves()) == 0 {
			r.create(gozzard.ActionStart, "")
		}
		r.until("the wave is not sent", func() bool { return len(r.waves()) == 1 })
		cancel()
		<-gone
	}

	r.answer("p1_1@0:10.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _ = runner.Run(ctx) }()
	end, _ := r.finish(1)
	same(t, "job", end.State, record.JobSucceeded)
	cancel()
	<-gone
}
