package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Transferred says what Transfer has copied.
type Transferred struct {
	Tables int
	Rows   int64
	Audit  gozzard.AuditHead // the newest row of the audit on both sides
}

// transferRows is how many rows one statement inserts.
const transferRows = 200

// ownTables are not copied: goose has its own versions, and the others belong to the servers of one database.
var ownTables = []string{versionTable, "marks", "servers", "leases"}

// begun are the tables that have rows in a new record.
var begun = []string{"counters", "audit_head"}

// Transfer copies the whole record into another one, which must be new, in one transaction. It compares every row, and
// follows the chain of the audit on both sides. No server may use either of them: both stores are the only ones on their
// databases.
func Transfer(ctx context.Context, from, to *Store, progress func(table string, rows int64)) (t Transferred, err error) {
	tables, err := from.tables(ctx)
	if err != nil {
		return t, err
	}
	others, err := to.tables(ctx)
	if err != nil {
		return t, err
	}
	if !slices.Equal(tables, others) {
		return t, fmt.Errorf("the two databases have different tables: %v and %v", tables, others)
	}
	if t.Audit, err = from.followAudit(ctx); err != nil {
		return t, fmt.Errorf("the record to copy: %w", err)
	}

	// Copy.
	t.Tables = len(tables)
	err = to.w.submit(ctx, &job{op: "the copy of a record", rows: maxBatchRows, grows: true,
		run: func(ctx context.Context, c *conn) error {
			t.Rows = 0
			for _, name := range tables {
				n, err := transferTable(ctx, from, c, name)
				if err != nil {
					return fmt.Errorf("table %s: %w", name, err)
				}
				t.Rows += n
				progress(name, n)
			}
			return nil
		}})
	if err != nil {
		return t, err
	}

	head, err := to.followAudit(ctx)
	if err == nil && head != t.Audit {
		err = errors.New("its audit ends with another row")
	}
	if err != nil {
		return t, fmt.Errorf("the copy is not the same: %w", err)
	}
	return t, nil
}

// tables are the names of all tables, each behind those that it refers to.
func (s *Store) tables(ctx context.Context) (names []string, err error) {
	rows, err := s.read.db.QueryContext(ctx, s.d.tables)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		if !slices.Contains(ownTables, name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, s.readError("the names of the tables", err)
	}

	last := []string{"businesses", "sets", "modules", "services"} // each refers to the one before
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(slices.Index(last, a)-slices.Index(last, b), strings.Compare(a, b))
	})
	return names, nil
}

func (s *Store) followAudit(ctx context.Context) (head gozzard.AuditHead, err error) {
	if head, err = s.AuditHead(ctx); err != nil {
		return head, err
	}
	var check gozzard.AuditCheck
	for {
		rows, err := s.AuditAfter(ctx, check.Head.Seq, auditPageRows)
		if err != nil {
			return head, err
		}
		for i := range rows {
			if err := check.Follow(&rows[i]); err != nil {
				return head, err
			}
		}
		if len(rows) < auditPageRows {
			return head, check.End(head)
		}
	}
}

// transferTable copies one table and compares it with the original.
func transferTable(ctx context.Context, from *Store, to *conn, name string) (n int64, err error) {
	// Look at the new table.
	columns, err := columnsOf(ctx, to.c, name)
	if err != nil {
		return 0, err
	}
	if err := emptyTable(ctx, to.c, name); err != nil {
		return 0, err
	}

	// Copy.
	list := strings.Join(namesOf(columns), ", ")
	insert := insertText(name, list, len(columns))
	var sum, copied digest
	batch := make([]any, 0, transferRows*len(columns))
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, err := to.c.ExecContext(ctx, insert(len(batch)/len(columns), to.d.placeholder), batch...)
		batch = batch[:0]
		return err
	}
	err = eachRow(ctx, from.read.db, `SELECT `+list+` FROM `+name, len(columns), func(row []any) error {
		sum.add(row)
		for i, v := range row {
			batch = append(batch, columns[i].value(v))
		}
		if len(batch) == cap(batch) {
			return flush()
		}
		return nil
	})
	if err = errors.Join(err, flush()); err != nil {
		return 0, err
	}

	// Compare.
	if err := eachRow(ctx, to.c, `SELECT `+list+` FROM `+name, len(columns), func(row []any) error {
		copied.add(row)
		return nil
	}); err != nil {
		return 0, err
	}
	if sum != copied {
		return 0, fmt.Errorf("%d rows were read and %d written, and they are not the same", sum.rows, copied.rows)
	}
	return sum.rows, nil
}

// emptyTable checks that a table is that of a new record, and removes what a new record has.
func emptyTable(ctx context.Context, c *sql.Conn, name string) error {
	if slices.Contains(begun, name) {
		_, err := c.ExecContext(ctx, `DELETE FROM `+name)
		return err
	}
	var n int64
	if err := c.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+name).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("the database to copy to has a record already: %d rows", n)
	}
	return nil
}

// column is a column of a table.
type column struct{ name, kind string }

func namesOf(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// value is a value as the column wants it. SQLite has no kind for truth values, and keeps bytes and texts as they came.
func (c column) value(v any) any {
	switch x := v.(type) {
	case int64:
		if c.kind == "BOOL" || c.kind == "BOOLEAN" {
			return x != 0
		}
	case string:
		if c.kind == "BYTEA" {
			return []byte(x)
		}
	case []byte:
		if c.kind == "TEXT" {
			return string(x)
		}
	}
	return v
}

func columnsOf(ctx context.Context, c *sql.Conn, table string) (list []column, err error) {
	rows, err := c.QueryContext(ctx, `SELECT * FROM `+table+` LIMIT 0`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	for _, t := range types {
		list = append(list, column{t.Name(), t.DatabaseTypeName()})
	}
	return list, err
}

func eachRow(ctx context.Context, db querier, query string, columns int, f func(row []any) error) error {
	rows, err := db.QueryContext(ctx, query)
	row, to := make([]any, columns), make([]any, columns)
	for i := range row {
		to[i] = &row[i]
	}
	return scanAll(rows, err, func(r *sql.Rows) error {
		if err := r.Scan(to...); err != nil {
			return err
		}
		return f(row)
	})
}

// insertText makes the statement that inserts rows.
func insertText(table, list string, columns int) func(rows int, placeholder func(int) string) string {
	return func(rows int, placeholder func(int) string) string {
		var b strings.Builder
		b.WriteString("INSERT INTO " + table + " (" + list + ") VALUES ")
		for i := range rows * columns {
			switch {
			case i == 0:
				b.WriteString("(")
			case i%columns == 0:
				b.WriteString("), (")
			default:
				b.WriteString(", ")
			}
			b.WriteString(placeholder(i + 1))
		}
		return b.String() + ")"
	}
}

// digest says what rows a table has, in any order.
type digest struct {
	rows int64
	sum  [4]uint64
}

func (d *digest) add(row []any) {
	h := sha256.New()
	for _, v := range row {
		var b []byte
		switch x := v.(type) {
		case nil:
			h.Write([]byte{0})
			continue
		case bool:
			b = strconv.AppendInt(nil, map[bool]int64{true: 1}[x], 10)
		case int64:
			b = strconv.AppendInt(nil, x, 10)
		case string:
			b = []byte(x)
		case []byte:
			b = x
		default:
			b = fmt.Append(nil, x)
		}
		h.Write(binary.BigEndian.AppendUint64([]byte{1}, uint64(len(b))))
		h.Write(b)
	}

	d.rows++
	sum := h.Sum(nil)
	for i := range d.sum {
		d.sum[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}
