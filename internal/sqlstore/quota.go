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

// quotaHour is the time in which a quota fills up. The record has when it is full again, in microseconds of the clock of the
// database, so there is nothing to count meanwhile.
const quotaHour = int64(time.Hour / time.Microsecond)

// spendQuotas counts amounts in the transaction of what they are for. When a quota has too little left, the error is a
// *gozzard.OverQuota: the call is rolled back, and so is what it counted before. Write transactions of several servers run one
// after the other, so no other server counts at the same time.
func spendQuotas(ctx context.Context, c *conn, list []gozzard.Spending) error {
	for i := range list {
		p := &list[i]
		cost := max(1, int64(float64(quotaHour)*float64(p.N)/float64(p.Quota)))
		var used int64
		if _, err := c.oneNow(ctx, c.d.spendQuota(), []any{text(p.Name), cost}, &used); err != nil {
			return fmt.Errorf("a quota: %w", err)
		}

		switch over := used - quotaHour; {
		case over <= 0:
		case p.Force: // it takes what is left
			if err := c.execNow(ctx, stmtKey{text: c.d.emptyQuota()}, []any{text(p.Name)}); err != nil {
				return fmt.Errorf("a quota: %w", err)
			}
		default:
			wait := time.Duration(over) * time.Microsecond
			return &gozzard.Error{Kind: gozzard.ErrRateLimited, Message: "a quota has too little left", Retry: wait,
				Cause: &gozzard.OverQuota{Index: i, Wait: wait}}
		}
	}
	return nil
}

// spendQuota is the statement that spends a part of a quota, and says how much of it is used. A time that is too late to be
// right is from before the clock was set back.
func (d *dialect) spendQuota() string {
	now := "(" + d.now + ") * 1000"
	return `INSERT INTO quotas (name, full_at) VALUES ($1, ` + now + ` + $2) ON CONFLICT (name) DO UPDATE SET full_at = $2 +
		CASE WHEN quotas.full_at BETWEEN ` + now + ` AND ` + now + ` + ` + fmt.Sprint(2*quotaHour) + ` THEN quotas.full_at
		ELSE ` + now + ` END
		RETURNING full_at - ` + now
}

// emptyQuota is the statement that takes all of a quota.
func (d *dialect) emptyQuota() string {
	return `UPDATE quotas SET full_at = (` + d.now + `) * 1000 + ` + fmt.Sprint(quotaHour) + ` WHERE name = $1`
}
