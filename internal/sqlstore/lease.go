package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/lease"
)

// ClaimLeases takes for a holder those of the named leases that are free, renews those that it has, and returns the leases
// that are its own now. held are the fences that it knows of. A lease that is recorded for the holder with another fence
// belongs to an earlier run of it, so it gets a new fence at once: the same server does not run twice.
func (s *Store) ClaimLeases(ctx context.Context, holder string, names []string, held []lease.Fence,
	ttl time.Duration) (got []lease.Lease, err error) {
	defer s.timed("claim_leases", &err)()
	known := map[string]int64{}
	for _, f := range held {
		known[f.Name] = f.Number
	}

	err = s.w.submit(ctx, &job{op: "leases", rows: len(names), run: func(ctx context.Context, c *conn) error {
		got = nil
		for _, name := range names {
			l := lease.Lease{Fence: lease.Fence{Name: name, Holder: holder}, Left: ttl}
			found, err := c.one(ctx, `INSERT INTO leases (name, holder, fence, until) VALUES ($1, $2, 1, `+s.d.now+` + $3)
				ON CONFLICT (name) DO UPDATE SET
					fence = CASE WHEN leases.holder = excluded.holder AND leases.fence = $4 THEN leases.fence
						ELSE leases.fence + 1 END,
					holder = excluded.holder, until = excluded.until
				WHERE leases.holder = excluded.holder OR leases.until <= `+s.d.now+`
				RETURNING fence`, []any{name, text(holder), ttl.Milliseconds(), known[name]}, &l.Number)
			if err != nil {
				return err
			}
			if found {
				got = append(got, l)
			}
		}
		return nil
	}})
	return got, err
}

// ReleaseLeases gives leases up, so that other servers do not wait for their end. It ignores those that were lost.
func (s *Store) ReleaseLeases(ctx context.Context, held []lease.Fence) (err error) {
	defer s.timed("release_leases", &err)()
	return s.w.submit(ctx, &job{op: "leases", rows: len(held), run: func(ctx context.Context, c *conn) error {
		for _, f := range held {
			if _, err := c.change(ctx, `UPDATE leases SET holder = '', until = 0 WHERE name = $1 AND holder = $2 AND fence = $3`,
				f.Name, text(f.Holder), f.Number); err != nil {
				return err
			}
		}
		return nil
	}})
}

// Leases lists all leases, also those that nobody holds.
func (s *Store) Leases(ctx context.Context) (list []lease.Lease, err error) {
	defer s.timed("leases", &err)()
	err = s.read.each(ctx, `SELECT name, holder, fence, until - `+s.d.now+` FROM leases ORDER BY name`, nil,
		func(r *sql.Rows) error {
			var l lease.Lease
			var left int64
			err := r.Scan(&l.Name, &l.Holder, &l.Number, &left)
			l.Left = time.Duration(left) * time.Millisecond
			list = append(list, l)
			return err
		})
	return list, s.readError("the leases", err)
}

// checkFence fails unless a fence is that of its lease. On PostgreSQL nobody else can take the lease before the transaction
// has ended.
func (c *conn) checkFence(ctx context.Context, f lease.Fence) error {
	var number int64
	found, err := c.one(ctx, `SELECT fence FROM leases WHERE name = $1 AND holder = $2 AND fence = $3`+c.d.forShare,
		[]any{f.Name, text(f.Holder), f.Number}, &number)
	if err == nil && !found {
		err = &gozzard.Error{Kind: gozzard.ErrConflict, Cause: lease.ErrLost,
			Message: "this server lost the lease \"" + f.Name + "\": nothing was recorded"}
	}
	return err
}
