package waves

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/pace"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// Plane is what jobs need of the control plane.
type Plane interface {
	FindProcesses(caller gozzard.Caller, q topology.Query) (total int, rows []topology.Row)
	TopologyItems(ctx context.Context, biz int, rows []topology.Row, a gozzard.Action) ([]record.TopologyItem, error)
	Operate(ctx context.Context, op *gozzard.Operation) (gozzard.Task, error)
	Await(
		ctx context.Context, caller gozzard.Caller, id gozzard.TaskID, limit time.Duration,
	) (record.TaskResults, error)
	May(caller gozzard.Caller, a gozzard.Action, key gozzard.Key, t gozzard.Target, spec []byte) bool
}

// Worker does the work of jobs on configuration files.
type Worker interface {
	// Choose returns the processes that a job has tasks for: of rows those that have the files.
	Choose(ctx context.Context, biz int, c record.ConfigChoice, rows []topology.Row) ([]topology.Row, error)

	// Work does the tasks of a job that have not ended. It sets their state, reason, message, result and times, and saves some when
	// they are done. After an error it is called again.
	Work(ctx context.Context, j *record.Job, tasks []*record.JobTask, steps record.JobSteps) error
}

// Options are the parts and settings of a Runner. Zero settings get their defaults.
type Options struct {
	Store  Store
	Plane  Plane
	Worker Worker // nil: there are no jobs on configuration files

	// Rights returns the current rights of the creator of a job. A job runs longer than the request that created it,
	// and it must stop when its creator loses the rights. nil: no rights, so that no job does anything.
	Rights func(caller gozzard.Caller) *gozzard.Rights
	Log    *slog.Logger
	Now    func() time.Time
	Door   string // of the operations, as the record has it; "jobs"

	// Trace is the trace of the request that creates a job, so that its operations are a part of it. It may be nil: nothing is
	// traced.
	Trace func(ctx context.Context, caller gozzard.Caller) gozzard.Trace

	// Shared: other servers create jobs in the same record, and this Runner does theirs, too.
	Shared bool

	Keep    time.Duration // how long jobs are stored after their end; 7 days
	Timeout time.Duration // how much longer than its commands an operation may take before it has failed; 1 minute
}

// The limits of concurrent work. Waiting is cheap and may take long, so many groups may wait at the same time. Sending
// writes to the record, so few operations are sent at the same time.
const (
	maxJobs    = 256
	maxGroups  = 4096 // of one job
	maxSending = 32
)

const (
	pruneEvery = 10 * time.Minute
	pruneStep  = 20
	firstPause = time.Second // before a failed call of the record is repeated
	longPause  = 30 * time.Second
	lookShared = 2 * time.Second // between searches for jobs that other servers have recorded
)

// Runner runs jobs.
type Runner struct {
	o          Options
	wake       chan struct{}
	jobs       chan struct{} // has an element for each running job
	sending    chan struct{} // has an element for each operation that is being sent
	maxTargets int           // of one operation
	lookEvery  time.Duration // between searches for jobs that nobody runs

	mu      sync.Mutex
	active  bool           // Run runs: elsewhere another server does, and finds in the record what is to do
	queue   []jobRef       // jobs to run
	running map[int64]bool // true: the job was queued again meanwhile, so it must be run once more
}

// jobRef identifies a job.
type jobRef struct {
	biz int
	id  int64
}

// New returns a Runner. Run starts it.
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

	r := &Runner{
		o:          o,
		wake:       make(chan struct{}, 1),
		jobs:       make(chan struct{}, maxJobs),
		sending:    make(chan struct{}, maxSending),
		maxTargets: record.MaxTargets,
		lookEvery:  time.Minute,
		running:    map[int64]bool{},
	}
	if o.Shared {
		r.lookEvery = lookShared
	}
	return r
}

// Run runs jobs until ctx ends: the open ones of an earlier run, and those that are created. It returns when no job is
// running any more; the next run, of this Runner or of another server, continues the unfinished ones. Of several servers
// only one may run it.
func (r *Runner) Run(ctx context.Context) error {
	r.setActive(true)
	defer r.setActive(false)

	var wg sync.WaitGroup
	wg.Go(func() { r.lookLoop(ctx) })
	wg.Go(func() { r.pruneLoop(ctx) })

	for ctx.Err() == nil {
		for _, ref := range r.nextJobs() {
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

// setActive begins or ends a run. What an earlier run knew is forgotten: the record has it.
func (r *Runner) setActive(active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active, r.queue = active, nil
	clear(r.running)
}

// isRunning reports whether this Runner runs a job.
func (r *Runner) isRunning(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, running := r.running[id]
	return running
}

// add queues recorded jobs, if they are run here.
func (r *Runner) add(refs ...jobRef) {
	r.mu.Lock()
	if r.active {
		r.queue = append(r.queue, refs...)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// nextJobs empties the queue and returns the jobs that are not running yet.
func (r *Runner) nextJobs() (refs []jobRef) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for _, ref := range r.queue {
		if _, running := r.running[ref.id]; running {
			r.running[ref.id] = true
			continue
		}
		r.running[ref.id] = false
		refs = append(refs, ref)
	}
	r.queue = nil
	return refs
}

// leave marks a job as not running, unless it must be run once more.
func (r *Runner) leave(id int64) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.running[id] {
		r.running[id] = false
		return true
	}
	delete(r.running, id)
	return false
}

// drive runs a job, once more if it was queued meanwhile.
func (r *Runner) drive(ctx context.Context, ref jobRef) {
	for again := true; again; again = r.leave(ref.id) {
		select {
		case <-ctx.Done():
			return
		case r.jobs <- struct{}{}:
		}
		err := r.runJob(ctx, ref)
		<-r.jobs
		if err != nil && ctx.Err() == nil {
			r.o.Log.Error("cannot continue a job", "job", ref.id, "err", err)
		}
	}
}

// lookLoop first queues the open jobs of an earlier run. Later it looks for jobs that other servers have recorded, and for
// those that were recorded and never started because the record's answer to Create was lost.
func (r *Runner) lookLoop(ctx context.Context) {
	for first := true; ; first = false {
		var open []record.Job
		err := r.retryUntilDone(ctx, "open jobs", func() (err error) {
			open, err = r.o.Store.OpenJobs(ctx)
			return err
		})
		if err != nil {
			return
		}
		for _, j := range open {
			due := first || j.State == record.JobPending && r.o.Now().Sub(j.Started) > r.lookEvery
			if r.o.Shared {
				due = !r.isRunning(j.ID)
			}
			if due {
				r.add(jobRef{j.Biz, j.ID})
			}
		}
		if pace.Sleep(ctx, r.lookEvery) != nil {
			return
		}
	}
}

func (r *Runner) pruneLoop(ctx context.Context) {
	for wait := time.Minute; pace.Sleep(ctx, wait) == nil; {
		n, err := r.o.Store.PruneJobs(ctx, r.o.Now().Add(-r.o.Keep), pruneStep)
		wait = pruneEvery
		if err != nil && ctx.Err() == nil {
			r.o.Log.Error("cannot prune old jobs", "err", err)
		} else if n == pruneStep {
			wait = firstPause
		}
	}
}

// retryUntilDone repeats a call of the record until it succeeds: a job waits for its record rather than losing results.
// It gives up only if the thing does not exist, if this run or the record ends, or if another server runs jobs now.
func (r *Runner) retryUntilDone(ctx context.Context, what string, f func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := f()
		switch {
		case err == nil, isKind(err, gozzard.ErrNotFound), errors.Is(err, record.ErrStopped),
			errors.Is(err, lease.ErrLost):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.o.Log.Warn("a job waits for the database, trying again", "what", what, "err", err)
		if err := pace.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func isKind(err error, kind gozzard.ErrorKind) bool {
	var e *gozzard.Error
	return errors.As(err, &e) && e.Kind == kind
}
