package sqlstore

import (
	"context"

	"github.com/gozzard/gozzard/internal/record"
)

// DrawNumber draws the number of a task in a transaction and calls f in the middle of it.
func DrawNumber(s *Store, f func()) error {
	return s.w.submit(context.Background(), &job{op: "a number", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE counters SET value = value + 1 WHERE name = 'number'`)
		f()
		return err
	}})
}

// Bump says in a transaction that facts of a kind changed, calls f and ends with result.
func Bump(s *Store, kind record.Kind, f func(), result error) error {
	return s.w.submit(context.Background(), &job{op: "a change", rows: 1, run: func(ctx context.Context, c *conn) error {
		if err := c.bump(ctx, kind); err != nil {
			return err
		}
		f()
		return result
	}})
}

// SplitSQL splits a migration into its statements.
var SplitSQL = splitSQL
