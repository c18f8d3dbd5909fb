package sqlstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// lateRows is the largest number of rows that a job leaves to the ledger. More have statements for themselves.
const lateRows = 16

// ledger has writes of a transaction that no statement has needed yet. Small jobs that share a transaction share the
// statements that write them, and the numbers and hashes of their audit rows follow each other in memory. Any other
// statement is preceded by flush, so it sees what was written before it.
type ledger struct {
	tables []lateTable // in the order in which they are written

	number int64 // the last that was given out; 0: none was
	stored int64 // what the counter has
	head   *auditLink
	linked bool // head is not what the record has
}

// lateTable is the rows of one bulk statement.
type lateTable struct {
	b    *bulk
	rows int
	args []any
	at   map[string]int // where the row with a key is, for a statement that must not name a key twice
}

// auditLink is the newest row of the audit.
type auditLink struct {
	seq  int64
	hash gozzard.AuditHash
}

// mark is a copy that is not changed by what is added to the ledger later. restore goes back to it.
func (l *ledger) mark() ledger {
	m := *l
	m.tables = slices.Clone(l.tables)
	return m
}

// restore forgets what was added since a mark, or brings back what was written since and was rolled back.
func (l *ledger) restore(m ledger) {
	*l = m
	for i := range l.tables {
		for key, row := range l.tables[i].at {
			if row >= l.tables[i].rows {
				delete(l.tables[i].at, key)
			}
		}
	}
}

// put writes the rows of a bulk statement, or leaves them to the ledger when they are few. args appends the values of row i.
func (c *conn) put(ctx context.Context, b *bulk, n int, args func(i int, to []any) []any) error {
	if n > lateRows {
		return c.execRows(ctx, b, n, args)
	}
	for i := range n {
		if err := c.later(ctx, b, args(i, make([]any, 0, len(b.types)))); err != nil {
			return err
		}
	}
	return nil
}

// later leaves a row to the ledger.
func (c *conn) later(ctx context.Context, b *bulk, row []any) error {
	t := c.late.table(b)
	if b.key > 0 {
		key := keyOf(row[:b.key])
		if i, twice := t.at[key]; twice {
			if b.newest { // the later row has all that the earlier one would leave
				copy(t.args[i*len(row):], row)
				return nil
			}
			if err := c.flush(ctx); err != nil {
				return err
			}
			t = c.late.table(b)
		}
		t.at[key] = t.rows
	}
	t.args, t.rows = append(t.args, row...), t.rows+1
	return nil
}

// table finds the rows of a bulk statement.
func (l *ledger) table(b *bulk) *lateTable {
	for i := range l.tables {
		if l.tables[i].b == b {
			return &l.tables[i]
		}
	}
	l.tables = append(l.tables, lateTable{b: b, at: map[string]int{}})
	return &l.tables[len(l.tables)-1]
}

// keyOf joins values that are texts or bytes. No text in the record has a zero byte.
func keyOf(values []any) string {
	var s strings.Builder
	for _, v := range values {
		if b, ok := v.([]byte); ok {
			s.Write(b)
		} else {
			s.WriteString(v.(string))
		}
		s.WriteByte(0)
	}
	return s.String()
}

// flush writes what is in the ledger. In a transaction that several jobs share it is not known whose row was at fault, so an
// error ends the transaction and each job is tried alone.
func (c *conn) flush(ctx context.Context) error {
	l := c.late
	c.late = ledger{}
	err := c.writeLedger(ctx, &l)
	if err != nil && c.shared {
		return errors.Join(errTxUnknown, err)
	}
	return err
}

func (c *conn) writeLedger(ctx context.Context, l *ledger) error {
	for i := range l.tables {
		t := &l.tables[i]
		width := len(t.b.types)
		err := inChunks(t.rows, func(from, to int) error {
			return c.execNow(ctx, stmtKey{bulk: t.b, rows: to - from}, t.args[from*width:to*width])
		})
		if err != nil {
			return err
		}
	}

	if l.number > l.stored {
		if err := c.execNow(ctx, stmtKey{text: `UPDATE counters SET value = $1 WHERE name = 'number'`}, []any{l.number}); err != nil {
			return err
		}
	}
	if l.linked {
		return c.execNow(ctx, stmtKey{text: `UPDATE audit_head SET seq = $1, hash = $2`}, []any{l.head.seq, l.head.hash[:]})
	}
	return nil
}

// nextNumber gives out the next number of tasks and audit rows. The row of the counter stays locked until the commit,
// so numbers are committed in their order, even when several servers share a database.
func nextNumber(ctx context.Context, c *conn) (int64, error) {
	if c.late.number > 0 {
		c.late.number++
		return c.late.number, nil
	}

	var n int64
	_, err := c.oneNow(ctx, `UPDATE counters SET value = value + 1 WHERE name = 'number' RETURNING value`, nil, &n)
	if err == nil {
		c.late.number, c.late.stored = n, n
	}
	return n, err
}

// auditHead is the newest row of the audit. The caller has a number from nextNumber, so no other transaction adds a row.
func (c *conn) auditHead(ctx context.Context) (*auditLink, error) {
	if c.late.head != nil {
		return c.late.head, nil
	}

	var hash []byte
	head := &auditLink{}
	if found, err := c.oneNow(ctx, `SELECT seq, hash FROM audit_head`, nil, &head.seq, &hash); err != nil || !found {
		return nil, errors.Join(err, missingHead(found))
	}
	if len(hash) > 0 && copy(head.hash[:], hash) != len(hash) {
		return nil, errors.New("the head of the audit has a wrong hash")
	}
	c.late.head = head
	return head, nil
}
