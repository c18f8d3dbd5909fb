package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/record"
)

// SigningKey is the public part of the key that the servers of this record sign with; "": none is recorded.
func (s *Store) SigningKey(ctx context.Context) (key string, err error) {
	defer s.timed("signing_key", &err)()
	err = s.read.each(ctx, `SELECT key FROM signing_key`, nil, func(r *sql.Rows) error { return r.Scan(&key) })
	return key, s.readError("the signing key", err)
}

// SetSigningKey records the public part of the key that follows another one. The error is ErrConflict if the record has
// another one than from: two servers rotate at the same time.
func (s *Store) SetSigningKey(ctx context.Context, from, to string, audit enrol.AuditEntry) (err error) {
	defer s.timed("set_signing_key", &err)()
	row := enrolRow(ctx, audit)
	return s.w.submit(ctx, &job{op: "the signing key", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		var have string
		_, err := c.one(ctx, `SELECT key FROM signing_key`, nil, &have)
		switch {
		case err != nil:
			return err
		case have == to: // an earlier try was done, although its answer was lost
			return nil
		case have != from:
			return gozzard.Errorf(gozzard.ErrConflict, "another server has rotated the signing key at the same time: "+
				"\"gozzard key status\" shows the present one")
		}

		_, err = c.change(ctx, `INSERT INTO signing_key (one, key) VALUES ($1, $2)
			ON CONFLICT (one) DO UPDATE SET key = excluded.key`, true, text(to))
		if err != nil {
			return err
		}
		if err := c.bump(ctx, record.KindSigning); err != nil {
			return err
		}
		return auditEnrolment(ctx, c, row, nil)
	}})
}
