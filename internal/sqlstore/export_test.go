package sqlstore

import "context"

// DrawNumber draws the number of a task in a transaction and calls f in the middle of it.
func DrawNumber(s *Store, f func()) error {
	return s.w.submit(context.Background(), &job{op: "a number", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `UPDATE counters SET value = value + 1 WHERE name = 'number'`)
		f()
		return err
	}})
}

// SplitSQL splits a migration into its statements.
var SplitSQL = splitSQL
