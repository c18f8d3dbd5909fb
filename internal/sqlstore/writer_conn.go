package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// connectTimeout limits how long the callers that wait for the writer wait for a new connection.
const connectTimeout = 5 * time.Second

// connect opens the connection of the writer, if there is none.
func (w *writer) connect(ctx context.Context) error {
	if w.c != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}

	if w.d.opened != nil {
		if err := w.d.opened(ctx, c); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	if w.d.marks {
		if err := w.checkMark(ctx, c); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	w.c = &conn{c: c, d: w.d, stmts: map[stmtKey]*sql.Stmt{}}
	return nil
}

// disconnect closes a connection that may be broken. The next transaction opens a new one.
func (w *writer) disconnect() {
	if w.c == nil {
		return
	}
	// ErrBadConn makes the pool drop the connection instead of keeping it. Raw returns it, so that is no failure.
	_ = w.c.c.Raw(func(any) error { return driver.ErrBadConn })
	if err := w.c.close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		w.o.Log.Debug("cannot close a broken database connection", "err", err)
	}
	w.c = nil
}

// rollback ends the transaction without effect. SQLite may have rolled it back already, and then ROLLBACK itself
// fails; that is no problem. A connection on which no new transaction can begin is found by the next BEGIN.
func (w *writer) rollback(ctx context.Context) {
	if err := w.c.exec(ctx, "ROLLBACK"); err != nil && w.d.classify(err) != failStatement {
		w.disconnect()
	}
}

// shutdown rejects the jobs that are still queued and closes the connection.
func (w *writer) shutdown(ctx context.Context) error {
	w.rejectQueued()

	if w.c == nil {
		return nil
	}

	var err error

	if w.fatal.Load() == nil {
		err = w.maintenance.beforeClose(ctx, w.c.c)
	}

	return errors.Join(err, w.c.close())
}

func (w *writer) rejectQueued() {
	w.collect()
	for j, ok := w.waiting.Next(); ok; j, ok = w.waiting.Next() {
		if j.state.CompareAndSwap(jobQueued, jobClaimed) {
			j.done <- record.ErrStopped
		}
	}
}

// late is ready when a job has waited too long for its turn.
func (w *writer) late() (late <-chan time.Time, stop func()) {
	if w.d.queueTime == 0 {
		return nil, func() {}
	}
	t := time.NewTimer(w.d.queueTime)
	return t.C, func() { t.Stop() }
}

// errSilent answers a job that was not begun.
func (w *writer) errSilent() error {
	return gozzard.Errorf(gozzard.ErrUnavailable,
		"the database has not answered for %s: nothing was changed; try again later", w.d.queueTime)
}
