package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// reader is the pool of connections that only read, with the statements prepared on them: preparing one takes longer
// than most reads. There are as many statements as texts in this package.
type reader struct {
	db *sql.DB
	d  *dialect

	turns chan struct{} // has an item for each read that uses a connection; nil: no limit

	mu    sync.RWMutex
	stmts map[stmtKey]*sql.Stmt // database/sql prepares each once on every connection that runs it
}

func newReader(db *sql.DB, d *dialect) *reader {
	r := &reader{db: db, d: d, stmts: map[stmtKey]*sql.Stmt{}}
	if d.readers > 0 {
		r.turns = make(chan struct{}, d.readers)
	}
	return r
}

// begin waits until a connection is free. end must be called afterwards.
func (r *reader) begin(ctx context.Context) (end func(), err error) {
	if r.turns == nil {
		return func() {}, nil
	}
	end = func() { <-r.turns }
	select {
	case r.turns <- struct{}{}:
		return end, nil
	default:
	}

	late := time.NewTimer(readerTimeout)
	defer late.Stop()
	select {
	case r.turns <- struct{}{}:
		return end, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, gozzard.Errorf(gozzard.ErrUnavailable,
			"the database does not answer: all %d connections for reading have been in use for %s; try again later",
			r.d.readers, readerTimeout)
	}
}

func (r *reader) prepared(ctx context.Context, k stmtKey) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	r.mu.RLock()
	st := r.stmts[k]
	r.mu.RUnlock()

	if st != nil {
		return st, nil
	}

	st, err := r.db.PrepareContext(ctx, k.sql(r.d))
	if err != nil {
		return nil, err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if first := r.stmts[k]; first != nil { // another reader was faster
		return first, st.Close()
	}

	r.stmts[k] = st
	return st, nil
}

// each calls f for every row of a query.
func (r *reader) each(ctx context.Context, text string, args []any, f func(*sql.Rows) error) error {
	end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	st, err := r.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(r.d.readContext(ctx), args...)
	return scanAll(rows, err, f)
}

// queryRows runs a bulk query for n rows of values and calls f for each row found. args appends the values of row i.
func (r *reader) queryRows(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any,
	f func(*sql.Rows) error) error {
	end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()

	var buf []any
	return inChunks(n, func(from, to int) error {
		buf = buf[:0]
		for i := from; i < to; i++ {
			buf = args(i, buf)
		}
		st, err := r.prepared(ctx, stmtKey{bulk: b, rows: to - from})
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(r.d.readContext(ctx), buf...)
		return scanAll(rows, err, f)
	})
}

// snapshot runs several queries on one state of the record: they do not see what is committed meanwhile.
func (r *reader) snapshot(ctx context.Context, f func(*sql.Tx) error) error {
	end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}

	err = errors.Join(f(tx), tx.Rollback())
	if err != nil && ctx.Err() != nil { // the driver reports an ended context by an error that is not ctx.Err()
		return ctx.Err()
	}
	return err
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, st := range r.stmts {
		errs = append(errs, st.Close())
	}
	clear(r.stmts)
	return errors.Join(append(errs, r.db.Close())...)
}
