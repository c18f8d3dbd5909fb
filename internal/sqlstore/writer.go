package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Bounds of one shared transaction: more callers gain nothing, more rows make the others wait.
const (
	maxBatchJobs = 128
	maxBatchRows = 4096
	maxTries     = 3
)

// job is one write call on its way.
type job struct {
	op    string
	rows  int
	grows bool // records new facts: refused while the record is short of room
	// may run again after a rollback, so it begins by forgetting what it found before
	run func(ctx context.Context, t *conn) error
	// called when it is committed, in the order of the transaction; may be nil
	after func()
	state atomic.Int32
	done  chan error
}

const (
	jobQueued int32 = iota
	jobTaken
	jobDropped
)

// keeper looks after the room and the files of a database. All its funcs are called by the writer, between
// transactions; their errors concern no call, but may end the store.
type keeper interface {
	// short reports whether there is too little room for new facts. It may find out that room has returned.
	short(ctx context.Context, c *sql.Conn) (bool, error)
	// full is told that the database met a full disk; c may be nil.
	full(ctx context.Context, c *sql.Conn) error
	// committed is called after each commit.
	committed(ctx context.Context, c *sql.Conn) error
	// closing is called before the last connection closes.
	closing(ctx context.Context, c *sql.Conn) error
}

// writer is the only one who changes the database. Calls that wait while a commit is under way share the next one.
type writer struct {
	o        Options
	d        *dialect
	db       *sql.DB
	keep     keeper
	c        *conn // nil when there is no connection
	queue    chan *job
	stop     chan struct{} // closed by Close
	stopped  chan struct{} // closed when loop has ended
	closeErr error         // of loop; valid when stopped is closed
	dead     atomic.Pointer[gozzard.Error]
}

func newWriter(o Options, d *dialect, db *sql.DB, keep keeper) *writer {
	return &writer{o: o, d: d, db: db, keep: keep, queue: make(chan *job, maxBatchJobs), stop: make(chan struct{}),
		stopped: make(chan struct{})}
}

// submit runs a job in the next transaction and returns when that is committed. A context that ends while the job
// is queued takes it out; later the answer is waited for, because it alone says what is in the record.
func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.alive(); err != nil {
		return err
	}

	j.done = make(chan error, 1)
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stop:
		return record.ErrStopped
	}

	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobQueued, jobDropped) {
			return ctx.Err()
		}
	case <-w.stopped:
	}

	select {
	case err := <-j.done:
		return err
	case <-w.stopped:
	}

	select {
	case err := <-j.done:
		return err
	default:
		return record.ErrStopped
	}
}

// alive tells whether writes can be taken at all.
func (w *writer) alive() error {
	if e := w.dead.Load(); e != nil {
		return e
	}
	select {
	case <-w.stop:
		return record.ErrStopped
	default:
		return nil
	}
}

func (w *writer) loop() {
	defer close(w.stopped)
	ctx := context.Background() // a caller that goes away must not tear the transaction that others share
	for {
		select {
		case <-w.stop:
			w.closeErr = w.end(ctx)
			return
		case j := <-w.queue:
			w.commit(ctx, w.gather(j))
		}
	}
}

// gather takes what is waiting, within the bounds.
func (w *writer) gather(first *job) []*job {
	jobs := make([]*job, 0, 8)
	rows := 0
	for j := first; ; {
		if j.state.CompareAndSwap(jobQueued, jobTaken) {
			jobs = append(jobs, j)
			rows += j.rows
		}
		if len(jobs) >= maxBatchJobs || rows >= maxBatchRows {
			return jobs
		}
		select {
		case j = <-w.queue:
		default:
			return jobs
		}
	}
}

// commit answers every one of the jobs.
func (w *writer) commit(ctx context.Context, jobs []*job) {
	left, cause := w.transact(ctx, jobs)
	// counted over all of them: a database that does not answer must not be waited for once per caller
	broken := 0
	// the shared transaction was given up before its commit: nothing of it happened, so each goes again, alone
	for i := range left {
		alone := left[i : i+1 : i+1]
		for try := 1; len(alone) > 0; try++ {
			kind := w.d.classify(cause)
			switch kind {
			case failFull:
				w.metFull(ctx)
			case failBroken:
				broken++
			}
			if try > maxTries || broken > maxTries || try > 1 && kind == failFull {
				w.answer(alone[0], w.trouble(cause))
				break
			}
			alone, cause = w.transact(ctx, alone)
		}
	}
}

func (w *writer) metFull(ctx context.Context) {
	var c *sql.Conn
	if w.c != nil {
		c = w.c.c
	}
	if err := w.keep.full(ctx, c); err != nil {
		w.note(err)
	}
}

// admit answers jobs that cannot be run now and returns the others. It needs a connection.
func (w *writer) admit(ctx context.Context, jobs []*job) []*job {
	if e := w.dead.Load(); e != nil {
		for _, j := range jobs {
			w.answer(j, e)
		}
		return nil
	}

	grows := func(j *job) bool { return j.grows }
	if !slices.ContainsFunc(jobs, grows) {
		return jobs
	}

	short, err := w.keep.short(ctx, w.c.c)
	if err != nil {
		w.note(err)
	}
	if !short {
		return jobs
	}

	for _, j := range jobs {
		if j.grows {
			w.answer(j, errFull(nil))
		}
	}

	return slices.DeleteFunc(slices.Clone(jobs), grows)
}

// transact runs jobs in one transaction and answers them after its commit. Jobs it could not decide about come back
// with the reason; then nothing of the transaction happened.
func (w *writer) transact(ctx context.Context, jobs []*job) (left []*job, cause error) {
	start := w.o.Now()

	if err := w.connect(ctx); err != nil { // another try would only let the others wait longer
		return nil, w.fail(jobs, errors.Join(errSpoilt, fmt.Errorf("cannot connect to the database: %w", err)))
	}
	if jobs = w.admit(ctx, jobs); len(jobs) == 0 {
		return nil, nil
	}
	if err := w.c.control(ctx, w.d.begin); err != nil {
		w.disconnect()
		return w.give(jobs, err)
	}

	results := make([]error, len(jobs))
	for i, j := range jobs {
		if results[i] = w.runJob(ctx, j, len(jobs) > 1); w.spoils(results[i]) {
			w.rollback(ctx)
			return w.give(jobs, results[i])
		}
	}

	var err error

	if len(jobs) == 1 && results[0] != nil {
		w.rollback(ctx)
	} else {
		err = w.c.control(ctx, "COMMIT")
		w.o.Observe("commit", w.o.Now().Sub(start), err)
	}

	if err != nil {
		w.rollback(ctx)
		if kind := w.d.classify(err); kind == failFull || kind == failRetry {
			return w.give(jobs, err) // known not to have happened
		}
		return nil, w.fail(jobs, err)
	}

	for i, j := range jobs {
		if results[i] == nil && j.after != nil {
			j.after()
		}
		w.answer(j, results[i])
	}

	if err := w.keep.committed(ctx, w.c.c); err != nil {
		w.note(err)
	}

	return nil, nil
}

// runJob runs one job in a savepoint of its own, so that its failure is only its own. A job that is alone has the
// transaction for that.
func (w *writer) runJob(ctx context.Context, j *job, shared bool) error {
	if !shared {
		return j.run(ctx, w.c)
	}
	if err := w.c.control(ctx, "SAVEPOINT job"); err != nil {
		return errors.Join(errSpoilt, err)
	}

	runErr := j.run(ctx, w.c)
	if w.spoils(runErr) {
		return runErr
	}
	if runErr != nil {
		if err := w.c.exec(ctx, "ROLLBACK TO SAVEPOINT job"); err != nil {
			return errors.Join(errSpoilt, runErr, err)
		}
	}

	if err := w.c.control(ctx, "RELEASE SAVEPOINT job"); err != nil {
		return errors.Join(errSpoilt, runErr, err)
	}

	return runErr
}

// errSpoilt marks an error after which the state of the transaction is not known.
var errSpoilt = errors.New("transaction given up")

// spoils reports whether the whole transaction must be given up: SQLite may have rolled it back by itself.
func (w *writer) spoils(err error) bool {
	return err != nil && (errors.Is(err, errSpoilt) || w.d.classify(err) != failOther)
}

// give hands jobs back for another try, or answers them when there is none.
func (w *writer) give(jobs []*job, err error) ([]*job, error) {
	if w.d.classify(err) == failFatal {
		return nil, w.fail(jobs, err)
	}
	return jobs, err
}

// fail answers all jobs with an error; a fatal one ends the store.
func (w *writer) fail(jobs []*job, err error) error {
	w.die(err)
	for _, j := range jobs {
		w.answer(j, w.trouble(err))
	}
	return err
}

// note takes an error that no caller is told of.
func (w *writer) note(err error) {
	if !w.die(err) {
		w.o.Log.Warn("the keeping of the record met an error", "err", err)
	}
}

// die ends the store when an error means that the disk can no longer be trusted.
func (w *writer) die(err error) bool {
	if w.d.classify(err) != failFatal {
		return false
	}
	e := &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "the record failed and takes nothing more", Cause: err}
	if w.dead.CompareAndSwap(nil, e) {
		w.o.Fatal(fmt.Errorf("the disk failed under the record: %w", err))
	}
	return true
}

func (w *writer) answer(j *job, err error) {
	var known *gozzard.Error
	if err != nil && !errors.As(err, &known) {
		err = fmt.Errorf("cannot record %s: %w", j.op, err)
	}
	j.done <- err
}

// trouble turns an error of the database into one for callers.
func (w *writer) trouble(err error) error {
	if e := w.dead.Load(); e != nil {
		return e
	}

	switch w.d.classify(err) {
	case failFull:
		return errFull(err)
	case failOther:
		if !errors.Is(err, errSpoilt) {
			return err
		}
	}

	return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: "the record does not answer, try again later",
		Cause: err}
}

func errFull(cause error) error {
	return &gozzard.Error{Kind: gozzard.ErrStorageFull, Cause: cause,
		Message: "the record has no room: nothing was changed; free space on the disk of the database, or shorten how long results are kept"}
}

// rollback gives the transaction up. SQLite may have done so already, so only a connection on which a new one
// cannot begin is a failure, and begin finds that out.
func (w *writer) rollback(ctx context.Context) {
	if err := w.c.exec(ctx, "ROLLBACK"); err != nil && w.d.classify(err) != failOther {
		w.disconnect()
	}
}

func (w *writer) connect(ctx context.Context) error {
	if w.c != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	w.c = &conn{c: c, d: w.d, stmts: map[stmtKey]*sql.Stmt{}}
	return nil
}

// disconnect throws the connection away; the next transaction makes a new one.
func (w *writer) disconnect() {
	if w.c == nil {
		return
	}
	_ = w.c.c.Raw(func(any) error { return driver.ErrBadConn }) // tells the pool not to keep it; always "fails"
	if err := w.c.close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		w.o.Log.Debug("a broken connection would not close", "err", err)
	}
	w.c = nil
}

// end refuses what is queued and closes the connection.
func (w *writer) end(ctx context.Context) error {
	for {
		select {
		case j := <-w.queue:
			if j.state.CompareAndSwap(jobQueued, jobTaken) {
				j.done <- record.ErrStopped
			}
			continue
		default:
		}
		break
	}

	if w.c == nil {
		return nil
	}

	var err error

	if w.dead.Load() == nil {
		err = w.keep.closing(ctx, w.c.c)
	}

	return errors.Join(err, w.c.close())
}
