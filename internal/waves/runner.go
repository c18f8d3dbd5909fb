package waves

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Plane is what rollouts need of the control plane.
type Plane interface {
	FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row)
	TopologyItems(ctx context.Context, biz int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem, error)
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Await(ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration) (record.TaskResults,
		error)
	May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, t gozzard.Target) bool
}

// Options are the parts and settings of a Runner. Zero settings get their defaults.
type Options struct {
	Store Store
	Plane Plane
	// Rights tells what the creator of a job may do at the moment; nil: nothing, so that no job does anything. A
	// job outlives the request that made it, and what its creator may do no longer it does no longer.
	Rights func(caller gozzard.Caller) *gozzard.Rights
	Log    *slog.Logger
	Now    func() time.Time
	Door   string // of the operations, as the record has it; "jobs"

	Keep    time.Duration // jobs stay that long after their end; 7 days
	Timeout time.Duration // an operation may take beyond the time of its commands until it counts as failed; 1 min
}

// Bounds of what is under way. Waiting costs little and may take long, so many groups may wait at a time; writing
// is what the record has to bear.
const (
	maxJobs    = 256
	maxGroups  = 4096 // of one job
	maxSending = 32
)

const (
	pruneEvery = 10 * time.Minute
	pruneStep  = 20
	firstPause = time.Second // before the record is asked again
	longPause  = 30 * time.Second
)

// Runner drives jobs.
type Runner struct {
	o       Options
	wake    chan struct{}
	jobs    chan struct{} // a token for each job being driven
	sending chan struct{} // a token for each operation being sent
	most    int           // targets of one operation
	look    time.Duration // between looks for jobs that nobody drives

	mu     sync.Mutex
	queue  []jobRef       // not looked at yet
	driven map[int64]bool // true: it was queued meanwhile, so look at it again
}

// jobRef names a job.
type jobRef struct {
	biz int
	id  int64
}

// New makes a Runner. It begins with Run.
func New(o Options) *Runner {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rights == nil {
		o.Rights = func(gozzard.Caller) *gozzard.Rights { return nil }
	}
	if o.Door == "" {
		o.Door = "jobs"
	}
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}

	return &Runner{
		o: o, wake: make(chan struct{}, 1), jobs: make(chan struct{}, maxJobs),
		sending: make(chan struct{}, maxSending), driven: map[int64]bool{},
		most: record.MaxTargets, look: time.Minute,
	}
}

// Run drives jobs until ctx ends: those that a former run left open, and those that are created. It runs once, and
// returns when nothing is under way any more; what was not finished is taken up by the next run.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { r.lookLoop(ctx) })
	wg.Go(func() { r.pruneLoop(ctx) })

	for ctx.Err() == nil {
		for _, ref := range r.take() {
			wg.Go(func() { r.drive(ctx, ref) })
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}

	wg.Wait()
	return nil
}

// add has jobs driven.
func (r *Runner) add(refs ...jobRef) {
	r.mu.Lock()
	r.queue = append(r.queue, refs...)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take empties the queue and returns the jobs that nobody drives yet.
func (r *Runner) take() (refs []jobRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.queue {
		if _, driven := r.driven[ref.id]; driven {
			r.driven[ref.id] = true
			continue
		}
		r.driven[ref.id] = false
		refs = append(refs, ref)
	}
	r.queue = nil
	return refs
}

// leave ends the driving of a job, unless it must be looked at again.
func (r *Runner) leave(id int64) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.driven[id] {
		r.driven[id] = false
		return true
	}
	delete(r.driven, id)
	return false
}

func (r *Runner) drive(ctx context.Context, ref jobRef) {
	for again := true; again; again = r.leave(ref.id) {
		select {
		case <-ctx.Done():
			return
		case r.jobs <- struct{}{}:
		}
		err := r.perform(ctx, ref)
		<-r.jobs
		if err != nil && ctx.Err() == nil {
			r.o.Log.Error("cannot go on with a job", "job", ref.id, "err", err)
		}
	}
}

// lookLoop takes up what a former run left open. Later it only looks for jobs that were recorded and never begun:
// the record's answer to who created them was lost. Jobs that are under way may be another server's.
func (r *Runner) lookLoop(ctx context.Context) {
	for first := true; ctx.Err() == nil; first = false {
		var open []record.Job
		err := r.insist(ctx, "open jobs", func() (err error) {
			open, err = r.o.Store.OpenJobs(ctx)
			return err
		})
		if err != nil {
			return
		}
		for _, j := range open {
			if first || j.State == record.JobPending && r.o.Now().Sub(j.Started) > r.look {
				r.add(jobRef{j.Biz, j.ID})
			}
		}
		r.sleep(ctx, r.look)
	}
}

func (r *Runner) pruneLoop(ctx context.Context) {
	for wait := time.Minute; r.sleep(ctx, wait); {
		n, err := r.o.Store.PruneJobs(ctx, r.o.Now().Add(-r.o.Keep), pruneStep)
		wait = pruneEvery
		if err != nil && ctx.Err() == nil {
			r.o.Log.Error("cannot prune old jobs", "err", err)
		} else if n == pruneStep {
			wait = firstPause
		}
	}
}

// sleep reports false when ctx has ended.
func (r *Runner) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// insist repeats what the record must take or give until it does: a job waits for its record rather than losing
// what came of it. Only what is gone, and the end of this run, are answers.
func (r *Runner) insist(ctx context.Context, what string, f func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := f()
		switch {
		case err == nil, isKind(err, gozzard.ErrNotFound), errors.Is(err, record.ErrStopped):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.o.Log.Warn("a job waits for the record", "what", what, "err", err)
		if !r.sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

func isKind(err error, kind gozzard.ErrorKind) bool {
	var e *gozzard.Error
	return errors.As(err, &e) && e.Kind == kind
}
