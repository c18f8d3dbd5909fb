package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// conn is the writer's connection with the statements prepared on it.
type conn struct {
	c     *sql.Conn
	d     *dialect
	stmts map[stmtKey]*sql.Stmt

	bumped map[record.Kind]int64 // versions that the transaction made

	late    ledger                   // of the transaction
	shared  bool                     // several jobs share the transaction
	waiting map[gozzard.AgentID]bool // agents on which attempts of the transaction wait; see findWaiting
}

// stmtKey names a prepared statement: either by its text, or as a bulk statement for a number of rows.
type stmtKey struct {
	text string
	bulk *bulk
	rows int
}

func (k stmtKey) sql(d *dialect) string {
	if k.bulk != nil {
		return k.bulk.text(k.rows, d)
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

// control runs BEGIN, COMMIT or a savepoint statement, on a transaction in which no statement has failed.
func (c *conn) control(ctx context.Context, text string) error {
	return c.execNow(ctx, stmtKey{text: text}, nil)
}

// exec runs a statement without arguments and without preparing it: PostgreSQL prepares nothing in a transaction in
// which a statement has failed.
func (c *conn) exec(ctx context.Context, text string) error {
	_, err := c.c.ExecContext(ctx, text)
	return err
}

// change runs a statement and returns how many rows it changed.
func (c *conn) change(ctx context.Context, text string, args ...any) (int64, error) {
	if err := c.flush(ctx); err != nil {
		return 0, err
	}
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

// one reads a row into some variables. found is false when there is none.
func (c *conn) one(ctx context.Context, text string, args []any, into ...any) (found bool, err error) {
	if err := c.flush(ctx); err != nil {
		return false, err
	}
	return c.oneNow(ctx, text, args, into...)
}

// oneNow is one for a statement that has nothing to do with what is in the ledger.
func (c *conn) oneNow(ctx context.Context, text string, args []any, into ...any) (found bool, err error) {
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
	if err := c.flush(ctx); err != nil {
		return err
	}
	st, err := c.prepared(ctx, stmtKey{text: text})
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	return scanAll(rows, err, f)
}

// execNow runs a statement without a look at the ledger.
func (c *conn) execNow(ctx context.Context, k stmtKey, args []any) error {
	st, err := c.prepared(ctx, k)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.c.Close())...)
}

// scanAll calls f for every row and closes the rows. err is the error of the query.
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

// bulk is a statement over many rows of values: head VALUES (…), (…) tail. types has one entry for each column. It is
// the SQL type where the database cannot infer it (in a WITH list), or "" where it can (in an INSERT).
type bulk struct {
	head  string
	types []string
	tail  string
	loose bool // an INSERT that may leave some of its rows when it fails: its job is rolled back then

	// Of a loose one.
	table   string
	columns []string

	// For rows in the ledger. The first key columns name a row that one statement must not name twice; 0: no rows do. With
	// newest the last of such rows is enough.
	key    int
	newest bool
}

// keyed says by how many columns the rows of a statement are known.
func (b *bulk) keyed(columns int, newest bool) *bulk {
	b.key, b.newest = columns, newest
	return b
}

// insertRows makes a bulk INSERT. tail is what follows the values, such as ON CONFLICT.
func insertRows(table, columns, tail string) *bulk {
	return &bulk{head: "INSERT INTO " + table + " (" + columns + ") ",
		types: make([]string, strings.Count(columns, ",")+1), tail: tail}
}

// looseRows is insertRows for a statement whose failure always rolls back its job. Without it SQLite copies each page before
// the statement changes it, to be able to undo that statement alone.
func looseRows(table, columns string) *bulk {
	b := insertRows(table, columns, "")
	b.loose, b.table, b.columns = true, table, strings.Split(columns, ", ")
	return b
}

// withRows makes a bulk statement that begins with WITH: tail can use the rows as a table v. Each column is written
// "name TYPE".
func withRows(tail string, columns ...string) *bulk {
	names := make([]string, len(columns))
	types := make([]string, len(columns))
	for i, c := range columns {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	return &bulk{head: "WITH v(" + strings.Join(names, ", ") + ") AS (", types: types, tail: ") " + tail}
}

// chunks are the possible numbers of rows of one bulk statement. There are few, so that few statements are prepared.
var chunks = [...]int{256, 128, 64, 32, 16, 8, 4, 2, 1}

// inChunks calls f for consecutive ranges of n rows, each as long as one of chunks.
func inChunks(n int, f func(from, to int) error) error {
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

// text is the SQL text for a number of rows.
func (b *bulk) text(rows int, d *dialect) string {
	var s strings.Builder
	if b.loose {
		s.WriteString(strings.Replace(b.head, "INSERT", d.looseInsert, 1))
	} else {
		s.WriteString(b.head)
	}
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
		arg := d.placeholder(i + 1)
		if t := b.types[i%len(b.types)]; t != "" && i < len(b.types) { // the types of the first row hold for all
			if t == "BYTEA" {
				t = d.bytes
			}
			arg = "CAST(" + arg + " AS " + t + ")"
		}
		s.WriteString(arg)
	}

	s.WriteString(")")
	s.WriteString(b.tail)
	return s.String()
}

// execRows runs a bulk statement for n rows. args appends the values of row i.
func (c *conn) execRows(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any) error {
	if n == 0 {
		return nil
	}
	if err := c.flush(ctx); err != nil {
		return err
	}

	if b.loose && n >= copyFrom && c.d.copyRows != nil {
		return c.d.copyRows(ctx, c.c, b, n, args)
	}

	buf := make([]any, 0, min(n, chunks[0])*len(b.types))
	return inChunks(n, func(from, to int) error {
		buf = buf[:0]
		for i := from; i < to; i++ {
			buf = args(i, buf)
		}
		return c.execNow(ctx, stmtKey{bulk: b, rows: to - from}, buf)
	})
}

// queryRows is execRows for a statement that returns rows. It calls f for each of those.
func (c *conn) queryRows(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any,
	f func(*sql.Rows) error) error {
	if n == 0 {
		return nil
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	return c.queryNow(ctx, b, n, args, f)
}

// queryNow is queryRows without what is in the ledger.
func (c *conn) queryNow(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any,
	f func(*sql.Rows) error) error {
	buf := make([]any, 0, min(n, chunks[0])*len(b.types))
	return inChunks(n, func(from, to int) error {
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
