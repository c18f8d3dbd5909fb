package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/turns"
)

// Limits of one shared transaction. More calls in it would not make each of them cheaper, and more rows would make
// the other calls wait too long.
const (
	maxBatchJobs  = 128
	maxBatchRows  = 4096
	leastRows     = 256
	maxBatchTime  = 25 * time.Millisecond // without the commit, if the commit is not slower
	maxTries      = 3
	rowTimeWeight = 8 // how many transactions the time of a row is smoothed over
)

// job is one write call on its way to the database. It has nothing to do with the jobs of package waves, which are
// rows of table jobs.
type job struct {
	op    string // names the call in errors: "cannot record <op>"
	app   string // that causes the call; "" for a call of the server itself
	rows  int    // an estimate of the rows that it writes
	grows bool   // it records new facts, so it is rejected while the disk is nearly full
	late  bool   // it leaves most of its rows to the ledger, and reads little
	// that the call needs; nil: it is no work of one server. See lease.WithFence
	fence *lease.Fence
	// may run again after a rollback, so it begins by forgetting what it found before
	run func(ctx context.Context, t *conn) error
	// called when it is committed, in the order of the transaction; may be nil
	after func()
	state atomic.Int32
	done  chan error // receives the answer; has room for one
}

// States of a job. The writer claims a queued job, or its caller cancels it: whichever is first.
const (
	jobQueued int32 = iota
	jobClaimed
	jobCancelled
)

// maintenance looks after the disk space and the files of a database. The writer calls all methods, between
// transactions. Their errors are not the error of any call, but a fatal one stops the store.
type maintenance interface {
	// lowOnSpace reports whether there is too little disk space for new facts. It may notice that there is enough
	// again.
	lowOnSpace(ctx context.Context, c *sql.Conn) (bool, error)
	// diskFull is called after the database reported a full disk. c may be nil.
	diskFull(ctx context.Context, c *sql.Conn) error
	// present returns an error when the files of the database were removed or replaced. Any goroutine may call it.
	present() error
	// watch is called from time to time while nothing is written.
	watch()
	// afterCommit is called after each commit.
	afterCommit(ctx context.Context, c *sql.Conn) error
	// beforeClose is called before the last connection closes.
	beforeClose(ctx context.Context, c *sql.Conn) error
}

// writer is the only part that changes the database. One goroutine runs loop. Calls that arrive while a commit is
// under way share the next transaction. When more calls wait than fit into one, kinds of calls take turns, and so do the
// apps that cause them: an app that brings many large tasks does not make the small ones of others wait.
type writer struct {
	o           Options
	d           *dialect
	db          *sql.DB
	maintenance maintenance
	c           *conn // nil when there is no connection
	queue       chan *job
	waiting     turns.Queue[*job]             // taken from queue; only loop uses it, and the two below
	rowTime     time.Duration                 // that a row takes in a transaction, smoothed
	commitTime  time.Duration                 // of the last transaction
	stop        chan struct{}                 // closed by Close
	stopped     chan struct{}                 // closed when loop has ended
	closeErr    error                         // of loop; valid when stopped is closed
	fatal       atomic.Pointer[gozzard.Error] // set once, by the first fatal error: no write is accepted after it
	mark        atomic.Int64                  // of the last transaction, if transactions leave marks
	marked      bool                          // mark is known; only loop uses it, and sent
	sent        int64                         // the mark of the last commit that was tried
}

func newWriter(o Options, d *dialect, db *sql.DB, m maintenance) *writer {
	return &writer{
		o: o, d: d, db: db, maintenance: m,
		queue:   make(chan *job, maxBatchJobs),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

// submit runs a job in the next transaction and returns when that transaction is committed. When the context ends
// while the job is queued, the job is cancelled. Later submit waits for the answer even if the context has ended,
// because only the answer says what is in the record.
func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.writable(); err != nil {
		return err
	}

	if f, ok := lease.FenceOf(ctx); ok {
		j.fence = &f
	}

	// Queue the job.
	j.done = make(chan error, 1)
	late, stopTimer := w.late()
	defer stopTimer()
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return w.errSilent()
	case <-w.stop:
		return record.ErrStopped
	}

	// Wait for the answer. The caller can still cancel, unless the writer has claimed the job.
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobQueued, jobCancelled) {
			return ctx.Err()
		}
	case <-late:
		if j.state.CompareAndSwap(jobQueued, jobCancelled) {
			return w.errSilent()
		}
	case <-w.stopped:
	}

	// The writer has claimed the job, or has stopped: no cancelling any more.
	select {
	case err := <-j.done:
		return err
	case <-w.stopped:
	}

	// The writer has stopped. It may have answered just before, and select picks at random among ready cases.
	select {
	case err := <-j.done:
		return err
	default:
		return record.ErrStopped
	}
}

// writable returns why no write can be accepted, or nil.
func (w *writer) writable() error {
	if e := w.fatal.Load(); e != nil {
		return e
	}
	select {
	case <-w.stop:
		return record.ErrStopped
	default:
		return nil
	}
}

// loop is the goroutine of the writer. It does not use the callers' contexts: a caller that gives up must not abort
// the transaction that it shares with others.
func (w *writer) loop() {
	defer close(w.stopped)
	ctx := context.Background()
	watch := time.NewTicker(presenceEvery)
	defer watch.Stop()
	for {
		select {
		case <-w.stop:
			w.closeErr = w.shutdown(ctx)
			return
		case <-watch.C:
			w.maintenance.watch()
		case j := <-w.queue:
			w.wait(j)
			w.collect()
			w.commit(ctx, w.gather())
		case <-w.more():
			w.collect()
			w.commit(ctx, w.gather())
		}
	}
}

// more is ready when jobs wait that did not fit into the last transaction.
func (w *writer) more() <-chan struct{} {
	if w.waiting.Len() == 0 {
		return nil
	}
	return closed
}

// closed is ready at any time.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait adds a job to those that wait for their turn.
func (w *writer) wait(j *job) { w.waiting.Add(j.op+" "+j.app, j) }

// collect takes all jobs out of the queue, also those whose callers wait for room in it.
func (w *writer) collect() {
	for {
		select {
		case j := <-w.queue:
			w.wait(j)
		default:
			return
		}
	}
}

// gather claims the jobs whose turn it is, within the limits of one transaction. A larger job is alone in its transaction.
func (w *writer) gather() []*job {
	jobs, rows, limit := make([]*job, 0, 8), 0, w.rowLimit()
	for len(jobs) < maxBatchJobs && rows < limit {
		j, ok := w.waiting.Peek()
		if !ok || len(jobs) > 0 && rows+j.rows > limit {
			break
		}

		w.waiting.Next()
		if j.state.CompareAndSwap(jobQueued, jobClaimed) {
			jobs = append(jobs, j)
			rows += j.rows
		}
	}

	// A statement that reads ends what can be shared, so the jobs without any come first. All of them are under way at the
	// same time: nothing depends on their order.
	slices.SortStableFunc(jobs, func(a, b *job) int {
		switch {
		case a.late == b.late:
			return 0
		case a.late:
			return -1
		}
		return 1
	})
	return jobs
}

// rowLimit is how many rows a transaction may have, so that those that wait for the next one do not wait long. A disk that
// takes long for a commit gets more rows with each.
func (w *writer) rowLimit() int {
	if w.rowTime <= 0 {
		return maxBatchRows
	}
	return min(max(int(max(maxBatchTime, w.commitTime)/w.rowTime), leastRows), maxBatchRows)
}

// measure notes how long the rows of a transaction took, and its commit.
func (w *writer) measure(jobs []*job, run, commit time.Duration) {
	rows := 0
	for _, j := range jobs {
		rows += j.rows
	}
	w.commitTime = commit
	if rows >= leastRows { // fewer say more about a transaction than about its rows
		w.rowTime += (run/time.Duration(rows) - w.rowTime) / rowTimeWeight
	}
}

// commit runs the jobs and answers each of them. It tries a shared transaction first. If that was rolled back, it
// runs each job again in a transaction for itself, so that one bad job does not fail the others.
func (w *writer) commit(ctx context.Context, jobs []*job) {
	if len(jobs) == 0 { // their callers cancelled them
		return
	}
	left, cause := w.transact(ctx, jobs)

	// Counted over all jobs: when the database does not respond, the wait must not be repeated for every caller.
	broken := 0
	for i := range left {
		alone := left[i : i+1 : i+1]
		for try := 1; len(alone) > 0; try++ {
			kind := w.d.classify(cause)
			switch kind {
			case failFull:
				w.handleDiskFull(ctx)
			case failBroken:
				broken++
			}

			if try > maxTries || broken > maxTries || try > 1 && kind == failFull {
				w.answer(alone[0], w.callerError(cause))
				break
			}
			alone, cause = w.transact(ctx, alone)
		}
	}
}

func (w *writer) handleDiskFull(ctx context.Context) {
	var c *sql.Conn
	if w.c != nil {
		c = w.c.c
	}
	if err := w.maintenance.diskFull(ctx, c); err != nil {
		w.maintenanceFailed(err)
	}
}

// rejectUnrunnable answers the jobs that cannot run now and returns the others. It needs a connection.
func (w *writer) rejectUnrunnable(ctx context.Context, jobs []*job) []*job {
	// After a fatal error nothing runs, and nothing without the files of the database.
	err := w.maintenance.present()
	if e := w.fatal.Load(); e != nil {
		err = e
	}
	if err != nil {
		for _, j := range jobs {
			w.answer(j, err)
		}
		return nil
	}

	// Jobs that add nothing always run.
	grows := func(j *job) bool { return j.grows }
	if !slices.ContainsFunc(jobs, grows) {
		return jobs
	}

	low, err := w.maintenance.lowOnSpace(ctx, w.c.c)
	if err != nil {
		w.maintenanceFailed(err)
	}
	if !low {
		return jobs
	}

	// Without disk space reject the jobs that add something.
	for _, j := range jobs {
		if j.grows {
			w.answer(j, errFull(nil))
		}
	}

	return slices.DeleteFunc(slices.Clone(jobs), grows)
}

// transact runs jobs in one transaction and answers them after its commit. It returns the jobs that can be tried
// again, with the reason; in that case the transaction had no effect.
func (w *writer) transact(ctx context.Context, jobs []*job) (left []*job, cause error) {
	start := w.o.Now()

	// Connect. A failed connect is not tried again: that would only make the other callers wait longer.
	if err := w.connect(ctx); err != nil {
		return nil, w.failAll(jobs, errors.Join(errTxUnknown, fmt.Errorf("cannot connect to the database: %w", err)))
	}
	if jobs = w.rejectUnrunnable(ctx, jobs); len(jobs) == 0 {
		return nil, nil
	}

	// Run the jobs.
	w.c.takeBumped()
	if err := w.begin(ctx); err != nil {
		w.disconnect()
		return w.retryOrFail(jobs, err)
	}

	results := make([]error, len(jobs))
	w.c.late, w.c.shared = ledger{}, len(jobs) > 1
	for i, j := range jobs {
		if results[i] = w.runJob(ctx, j); w.losesTx(results[i]) {
			w.rollback(ctx)
			return w.retryOrFail(jobs, results[i])
		}
	}
	if err := w.c.flush(ctx); err != nil { // that of a single job is empty
		w.rollback(ctx)
		return w.retryOrFail(jobs, err)
	}

	// Commit. A job alone in its transaction has no savepoint, so its failure rolls the transaction back. In both cases the
	// connection may be lost, or another one afterwards.
	bumped := w.c.takeBumped()
	if len(jobs) == 1 && results[0] != nil {
		w.rollback(ctx)
		bumped = nil
	} else if left, err := w.commitJobs(ctx, jobs, start); err != nil {
		return left, err
	}

	// The files may have been removed meanwhile: then the commit will not last.
	if err := w.maintenance.present(); err != nil {
		return nil, w.failAll(jobs, err)
	}

	if len(bumped) > 0 && w.o.Changed != nil {
		w.o.Changed(bumped)
	}

	// Answer the callers, in the order of the transaction.
	for i, j := range jobs {
		if results[i] == nil && j.after != nil {
			j.after()
		}
		w.answer(j, results[i])
	}

	if w.c == nil {
		return nil, nil
	}
	if err := w.maintenance.afterCommit(ctx, w.c.c); err != nil {
		w.maintenanceFailed(err)
	}

	return nil, nil
}

// begin opens a transaction.
func (w *writer) begin(ctx context.Context) error {
	w.c.waiting = nil
	if err := w.c.control(ctx, w.d.begin); err != nil || w.d.oneByOne == "" {
		return err
	}
	return w.c.control(ctx, w.d.oneByOne)
}

// runJob runs one job. In a shared transaction it runs inside a savepoint, so that its failure undoes only what it
// wrote itself. A job that is alone needs no savepoint.
func (w *writer) runJob(ctx context.Context, j *job) error {
	if !w.c.shared {
		if err := w.runFenced(ctx, j); err != nil {
			w.c.late = ledger{}
			return err
		}
		return w.c.flush(ctx)
	}
	if err := w.c.control(ctx, "SAVEPOINT job"); err != nil {
		return errors.Join(errTxUnknown, err)
	}

	before, bumped := w.c.late.mark(), maps.Clone(w.c.bumped)
	runErr := w.runFenced(ctx, j)
	if w.losesTx(runErr) {
		return runErr
	}
	if runErr != nil {
		w.c.late.restore(before)
		w.c.bumped = bumped
		if err := w.c.exec(ctx, "ROLLBACK TO SAVEPOINT job"); err != nil {
			return errors.Join(errTxUnknown, runErr, err)
		}
	}

	if err := w.c.control(ctx, "RELEASE SAVEPOINT job"); err != nil {
		return errors.Join(errTxUnknown, runErr, err)
	}

	return runErr
}

// runFenced runs a job, unless the lease that it needs belongs to another server.
func (w *writer) runFenced(ctx context.Context, j *job) error {
	if j.fence != nil {
		if err := w.c.checkFence(ctx, *j.fence); err != nil {
			return err
		}
	}
	return j.run(ctx, w.c)
}
