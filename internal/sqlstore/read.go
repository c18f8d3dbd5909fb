package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/gozzard/gozzard"
)

// reader is the pool of reading connections with the statements of its callers: planning one takes longer than most
// reads. Their number is that of the texts in this package.
type reader struct {
	db *sql.DB
	d  *dialect

	mu    sync.RWMutex
	stmts map[stmtKey]*sql.Stmt // each is prepared once on every connection that runs it
}

func newReader(db *sql.DB, d *dialect) *reader {
	return &reader{db: db, d: d, stmts: map[stmtKey]*sql.Stmt{}}
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

	if first := r.stmts[k]; first != nil { // somebody was faster
		return first, st.Close()
	}

	r.stmts[k] = st
	return st, nil
}

// each calls f for every row of a query.
func (r *reader) each(ctx context.Context, text string, args []any, f func(*sql.Rows) error) error {
	st, err := r.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(r.d.reading(ctx), args...)
	return scanAll(rows, err, f)
}

// ask runs a bulk query for n rows of values. args appends the values of row i.
func (r *reader) ask(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any,
	f func(*sql.Rows) error) error {
	var buf []any
	return parts(n, func(from, to int) error {
		buf = buf[:0]
		for i := from; i < to; i++ {
			buf = args(i, buf)
		}
		st, err := r.prepared(ctx, stmtKey{bulk: b, rows: to - from})
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(r.d.reading(ctx), buf...)
		return scanAll(rows, err, f)
	})
}

// whole runs several queries on one state of the record: what is committed meanwhile is not seen.
func (r *reader) whole(ctx context.Context, f func(*sql.Tx) error) error {
	// SQLite knows no other
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	err = errors.Join(f(tx), tx.Rollback())
	if err != nil && ctx.Err() != nil { // which the driver may have noticed first, in words of its own
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

// shelf keeps items of tasks near: they never change once they are recorded, and whoever asks for a task's verdicts
// mostly does so soon after it. Of two generations the older one goes when the younger is full.
type shelf struct {
	mu         sync.Mutex
	young, old map[place]gozzard.Attempt
	used       int // bytes of the younger one
}

const (
	shelfBytes = 4 << 20 // of one generation
	shelfItem  = 512     // what an item takes beside its definition
	shelfTask  = 64      // a task with more items gains nothing: reading them is what its attempts cost anyway
)

func (s *shelf) get(at place) (gozzard.Attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.young[at]
	if !ok {
		if it, ok = s.old[at]; ok {
			s.add(at, it)
		}
	}
	return it, ok
}

func (s *shelf) put(at place, it gozzard.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(at, it)
}

func (s *shelf) add(at place, it gozzard.Attempt) {
	if s.young == nil || s.used > shelfBytes {
		s.old, s.young, s.used = s.young, map[place]gozzard.Attempt{}, 0
	}
	s.young[at] = it
	s.used += shelfItem + len(it.Spec)
}
