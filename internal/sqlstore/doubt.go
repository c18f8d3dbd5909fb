package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gozzard/gozzard"
)

// A commit is in doubt when the connection broke before its answer came. Every transaction on a database behind a
// network leaves a mark, and the writer reads it on its next connection: callers get the true answer. A writer has one
// session at a time (see soleWriter and sharedWriter), so no other one can still be committing when it reads.

// doubtTimeout is how long the callers of a commit in doubt wait for the database to come back.
const doubtTimeout = 30 * time.Second

// writerName is the name of the writer in table marks.
func (w *writer) writerName() string { return cmp.Or(w.o.Server, "server") }

// markBits is how many bits of a mark are random. Above them is the number of the writer's transaction, so a mark also says
// how far the record has come. See SetBack.
const markBits = 22

// SetBack reports whether a record whose last mark is found has lost something: a server has seen the mark seen in it.
func SetBack(seen, found int64) bool {
	return found != seen && found>>markBits <= seen>>markBits
}

// Marked returns the mark of the last transaction; 0 when there was none.
func (s *Store) Marked(ctx context.Context) (mark int64, err error) {
	defer s.timed("marked", &err)()
	mark, err = s.w.lastMark(ctx, s.read.db)
	return mark, s.readError("the last mark", err)
}

// LastMark is the mark of the last transaction that this store has committed, or found when it connected.
func (s *Store) LastMark() int64 { return s.w.mark.Load() }

// Writer is the name under which this store leaves its marks.
func (s *Store) Writer() string { return s.w.writerName() }

func (w *writer) lastMark(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (mark int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT mark FROM marks WHERE writer = $1`, w.writerName()).Scan(&mark)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return mark, err
}

// checkMark compares the last mark that a new connection finds with what the writer knows. A record that was set back, or
// that another server has changed, is not the one that this server has read: the server must start again.
func (w *writer) checkMark(ctx context.Context, c *sql.Conn) error {
	found, err := w.lastMark(ctx, c)
	if err != nil {
		return err
	}

	known := w.mark.Load()
	switch {
	case !w.marked || found == w.sent: // w.sent: a commit was in doubt, and was done
		w.marked = true
		w.mark.Store(found)
	case found == known:
	case SetBack(known, found):
		return w.giveUp(&gozzard.Error{
			Kind: gozzard.ErrUnavailable,
			Message: "the record was set back: the database has lost changes that this server has recorded, and nothing is " +
				"recorded until the server is restarted",
		})
	default:
		return w.giveUp(&gozzard.Error{
			Kind: gozzard.ErrUnavailable,
			Message: "another server has changed the record while this one had no connection, and nothing is recorded until " +
				"this server is restarted",
		})
	}
	return nil
}

// commitJobs commits the transaction of jobs that have run. After an error it returns the jobs that can be tried again;
// the others have their answers.
func (w *writer) commitJobs(ctx context.Context, jobs []*job, start time.Time) (left []*job, err error) {
	// Leave a mark, if the answer to the commit can be lost.
	var mark int64
	if w.d.marks {
		if mark, err = w.leaveMark(ctx); err != nil {
			w.rollback(ctx)
			return w.retryOrFail(jobs, errors.Join(errTxUnknown, err))
		}
	}

	// Commit.
	ran := w.o.Now()
	w.sent = mark
	err = w.c.control(ctx, "COMMIT")
	now := w.o.Now()
	w.measure(jobs, ran.Sub(start), now.Sub(ran))
	w.o.Observe("commit", now.Sub(start), err)
	if err == nil {
		w.committed(mark)
		return nil, nil
	}

	w.rollback(ctx)
	kind := w.d.classify(err)
	if kind == failFull || kind == failRetry {
		return w.retryOrFail(jobs, err) // the database is known not to have committed
	}
	if kind != failBroken || !w.d.marks {
		return nil, w.failAll(jobs, err)
	}

	// The connection broke: look whether it was committed.
	w.disconnect()
	switch done, lookErr := w.wasCommitted(ctx, mark); {
	case lookErr != nil:
		return nil, w.doubtful(jobs, errors.Join(err, lookErr))
	case !done:
		return w.retryOrFail(jobs, err)
	}
	w.committed(mark)
	w.o.Log.Warn("the database ended the connection during a commit; the commit was done", "err", err)
	return nil, nil
}

// leaveMark writes a new mark in the transaction that is open.
func (w *writer) leaveMark(ctx context.Context) (mark int64, err error) {
	mark = (w.mark.Load()>>markBits+1)<<markBits | rand.Int64N(1<<markBits)
	_, err = w.c.change(ctx, `INSERT INTO marks (writer, mark) VALUES ($1, $2)
		ON CONFLICT (writer) DO UPDATE SET mark = excluded.mark`, text(w.writerName()), mark)
	return mark, err
}

// committed notes the mark of the last transaction, if it has one.
func (w *writer) committed(mark int64) {
	if w.d.marks {
		w.mark.Store(mark)
	}
}

// wasCommitted connects again and reads whether the transaction with a mark was committed.
func (w *writer) wasCommitted(ctx context.Context, mark int64) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, doubtTimeout)
	defer cancel()

	for {
		if done, err = w.readMark(ctx, mark); err == nil {
			return done, nil
		}
		w.disconnect()
		if w.fatal.Load() != nil {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-w.stop:
			return false, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *writer) readMark(ctx context.Context, mark int64) (same bool, err error) {
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	last, err := w.lastMark(ctx, w.c.c)
	return last == mark, err
}

// doubtful answers callers when nobody can say whether their transaction was committed.
func (w *writer) doubtful(jobs []*job, err error) error {
	for _, j := range jobs {
		w.answer(j, &gozzard.Error{
			Kind: gozzard.ErrUnavailable,
			Message: "the database ended the connection while it recorded this, and does not answer: it is not known whether " +
				"this was recorded; look before you try again",
			Cause: err,
		})
	}
	return err
}
