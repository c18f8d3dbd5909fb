package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// conn is the writing connection with the statements prepared on it.
type conn struct {
	c     *sql.Conn
	d     *dialect
	stmts map[stmtKey]*sql.Stmt
}

type stmtKey struct {
	text string // of one statement
	bulk *bulk  // or of rows of a bulk one
	rows int
}

func (k stmtKey) sql(d *dialect) string {
	if k.bulk != nil {
		return k.bulk.text(k.rows, d.place)
	}
	return k.text
}

func (c *conn) prepared(ctx context.Context, k stmtKey) (*sql.Stmt, error) {
	if st := c.stmts[k]; st != nil {
		return st, nil
	}
	st, err := c.c.PrepareContext(ctx, k.sql(c.d))
	if err != nil {
		return nil, err
	}
	c.stmts[k] = st
	return st, nil
}

// control runs a statement without arguments that begins, divides or ends a transaction which is whole.
func (c *conn) control(ctx context.Context, text string) error {
	st, err := c.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

// exec runs a statement without arguments as it is: of a transaction that has failed nothing can be prepared.
func (c *conn) exec(ctx context.Context, text string) error {
	_, err := c.c.ExecContext(ctx, text)
	return err
}

// change runs a statement and returns how many rows it changed.
func (c *conn) change(ctx context.Context, text string, args ...any) (int64, error) {
	st, err := c.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one reads a row; found is false when there is none.
func (c *conn) one(ctx context.Context, text string, args []any, into ...any) (found bool, err error) {
	st, err := c.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each calls f for every row of a query.
func (c *conn) each(ctx context.Context, text string, args []any, f func(*sql.Rows) error) error {
	st, err := c.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	return scanAll(rows, err, f)
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.c.Close())...)
}

func scanAll(rows *sql.Rows, err error, f func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := f(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// bulk is a statement over many rows of values: head (VALUES (…), (…)) tail. types gives the SQL type of each
// column where the database cannot know it from the place (a WITH list), or "" where it can (an INSERT).
type bulk struct {
	head  string
	types []string
	tail  string
}

// insert makes a bulk INSERT.
func insert(table, columns, tail string) *bulk {
	return &bulk{head: "INSERT INTO " + table + " (" + columns + ") ",
		types: make([]string, strings.Count(columns, ",")+1), tail: tail}
}

// with makes a bulk statement that joins a list v of given columns, each written "name TYPE".
func with(tail string, columns ...string) *bulk {
	names := make([]string, len(columns))
	types := make([]string, len(columns))
	for i, c := range columns {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	return &bulk{head: "WITH v(" + strings.Join(names, ", ") + ") AS (", types: types, tail: ") " + tail}
}

// chunks are the numbers of rows of one statement. Few sizes, so that the prepared statements stay few.
var chunks = [...]int{256, 128, 64, 32, 16, 8, 4, 2, 1}

// parts cuts n rows into chunks.
func parts(n int, f func(from, to int) error) error {
	for from := 0; from < n; {
		for _, size := range chunks {
			if n-from >= size {
				if err := f(from, from+size); err != nil {
					return err
				}
				from += size
				break
			}
		}
	}
	return nil
}

func (b *bulk) text(rows int, place func(int) string) string {
	var s strings.Builder
	s.WriteString(b.head)
	s.WriteString("VALUES ")

	for i := range rows * len(b.types) {
		switch {
		case i == 0:
			s.WriteByte('(')
		case i%len(b.types) == 0:
			s.WriteString("), (")
		default:
			s.WriteString(", ")
		}
		arg := place(i + 1)
		if t := b.types[i%len(b.types)]; t != "" && i < len(b.types) { // the first row decides for all
			arg = "CAST(" + arg + " AS " + t + ")"
		}
		s.WriteString(arg)
	}

	s.WriteString(")")
	s.WriteString(b.tail)
	return s.String()
}

// put runs a bulk statement for n rows. args appends the values of row i.
func (c *conn) put(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any) error {
	buf := make([]any, 0, min(n, chunks[0])*len(b.types))
	return parts(n, func(from, to int) error {
		buf = buf[:0]
		for i := from; i < to; i++ {
			buf = args(i, buf)
		}
		st, err := c.prepared(ctx, stmtKey{bulk: b, rows: to - from})
		if err != nil {
			return err
		}
		_, err = st.ExecContext(ctx, buf...)
		return err
	})
}

// putEach is put for statements that return rows.
func (c *conn) putEach(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any,
	f func(*sql.Rows) error) error {
	buf := make([]any, 0, min(n, chunks[0])*len(b.types))
	return parts(n, func(from, to int) error {
		buf = buf[:0]
		for i := from; i < to; i++ {
			buf = args(i, buf)
		}
		st, err := c.prepared(ctx, stmtKey{bulk: b, rows: to - from})
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, buf...)
		return scanAll(rows, err, f)
	})
}
