package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

// Authority is the authority of the servers of this record.
func (s *Store) Authority(ctx context.Context) (a record.Authority, err error) {
	defer s.timed("authority", &err)()
	err = s.read.each(ctx, `SELECT current, next FROM authority`, nil, func(r *sql.Rows) error {
		return r.Scan(&a.Current, &a.Next)
	})
	return a, s.readError("the authority", err)
}

// SetAuthority records a step of a rotation. The error is ErrConflict if the record has another authority than from: two
// servers rotate at the same time.
func (s *Store) SetAuthority(ctx context.Context, from, to record.Authority, audit enrol.AuditEntry) (err error) {
	defer s.timed("set_authority", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "the authority", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		var have record.Authority
		_, err := c.one(ctx, `SELECT current, next FROM authority`, nil, &have.Current, &have.Next)
		switch {
		case err != nil:
			return err
		case have == to: // an earlier try was done, although its answer was lost
			return nil
		case have != from:
			return gozzard.Errorf(gozzard.ErrConflict, "another server has rotated the authority at the same time: "+
				"\"gozzard key status\" shows the present one")
		}

		_, err = c.change(ctx, `INSERT INTO authority (one, current, next) VALUES ($1, $2, $3)
			ON CONFLICT (one) DO UPDATE SET current = excluded.current, next = excluded.next`, true, text(to.Current), text(to.Next))
		if err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindAuthority); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}

// SetServerAuthority records the newest authority of which a server has the key. It reports false for a server that is not
// recorded.
func (s *Store) SetServerAuthority(ctx context.Context, id, pin string) (found bool, err error) {
	defer s.timed("set_server_authority", &err)()
	err = s.w.submit(ctx, &job{op: "a server", rows: 1, run: func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `UPDATE servers SET authority = $2 WHERE id = $1`, text(id), text(pin))
		found = n > 0
		return err
	}})
	return found, err
}
