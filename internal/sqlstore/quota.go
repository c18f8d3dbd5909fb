package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// HasKey implements control.Store.
func (s *Store) HasKey(ctx context.Context, caller gozzard.Caller, key string) (found bool, err error) {
	defer s.timed("key", &err)()
	err = s.read.each(ctx, `SELECT 1 FROM idempotency WHERE app = $1 AND caller = $2 AND idem_key = $3`,
		[]any{text(caller.App), text(caller.User), text(key)}, func(*sql.Rows) error {
			found = true
			return nil
		})
	return found, s.readError("an idempotency key", err)
}

// Spent lists what callers did with some actions since a time, in the order of time. Attempts that were rejected or
// withdrawn do not count.
func (s *Store) Spent(ctx context.Context, since time.Time, actions []gozzard.Action) (list []record.Spent, err error) {
	defer s.timed("spent", &err)()
	numbers := make([]string, len(actions))
	for i, a := range actions {
		numbers[i] = fmt.Sprint(uint8(a))
	}

	query := `SELECT t.app, t.caller, t.asserted, t.accepted_at, COUNT(*) FROM tasks t
		JOIN items i ON i.task_seq = t.seq AND i.action IN (` + strings.Join(numbers, ", ") + `)
		JOIN attempts a ON a.task_seq = t.seq AND a.item = i.item AND a.state <> $2
		WHERE t.accepted_at >= $1 GROUP BY t.seq, t.app, t.caller, t.asserted, t.accepted_at ORDER BY t.seq`
	err = s.read.each(ctx, query, []any{millis(since), int64(gozzard.AttemptNotExecuted)}, func(r *sql.Rows) error {
		var row record.Spent
		var at int64
		if err := r.Scan(&row.Caller.App, &row.Caller.User, &row.Caller.Asserted, &at, &row.N); err != nil {
			return err
		}
		row.At = time.UnixMilli(at)
		list = append(list, row)
		return nil
	})
	return list, s.readError("what callers did", err)
}

// quotaMemory is how long the record knows what counted against a quota. An hour fills a quota again; twice that time
// also has what was spent before.
const quotaMemory = 2 * time.Hour

// addDefinitionBytes notes how many bytes of new definitions an app brought, and forgets what no quota needs any more.
func addDefinitionBytes(ctx context.Context, c *conn, app string, n int, at time.Time) error {
	if n == 0 {
		return nil
	}
	if _, err := c.change(ctx, `DELETE FROM definition_bytes WHERE at < $1`, millis(at.Add(-quotaMemory))); err != nil {
		return fmt.Errorf("bytes of definitions: %w", err)
	}
	_, err := c.change(ctx, `INSERT INTO definition_bytes (at, app, bytes) VALUES ($1, $2, $3)`, millis(at), text(app), n)
	if err != nil {
		return fmt.Errorf("bytes of definitions: %w", err)
	}
	return nil
}

// DefinitionBytes lists the bytes of new definitions that apps brought since a time, in the order of time.
func (s *Store) DefinitionBytes(ctx context.Context, since time.Time) (list []record.Spent, err error) {
	defer s.timed("definition_bytes", &err)()
	query := `SELECT app, at, bytes FROM definition_bytes WHERE at >= $1 ORDER BY at`
	err = s.read.each(ctx, query, []any{millis(since)}, func(r *sql.Rows) error {
		var row record.Spent
		var at int64
		if err := r.Scan(&row.Caller.App, &at, &row.N); err != nil {
			return err
		}
		row.At = time.UnixMilli(at)
		list = append(list, row)
		return nil
	})
	return list, s.readError("how many bytes of definitions apps brought", err)
}
