package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/gozzard/gozzard"
)

// ExportPosition implements auditexport.Store.
func (s *Store) ExportPosition(ctx context.Context, name string) (at gozzard.AuditHead, err error) {
	defer s.timed("export_position", &err)()
	var hash []byte
	err = s.read.db.QueryRowContext(ctx, `SELECT seq, hash FROM audit_exports WHERE name = $1`, name).Scan(&at.Seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return gozzard.AuditHead{}, nil
	}
	copy(at.Hash[:], hash)
	return at, s.readError("the position of an export", err)
}

// SaveExportPosition implements auditexport.Store.
func (s *Store) SaveExportPosition(ctx context.Context, name string, at gozzard.AuditHead, now time.Time) (err error) {
	defer s.timed("save_export_position", &err)()
	return s.w.submit(ctx, &job{op: "the position of an export", rows: 1, run: func(ctx context.Context, c *conn) error {
		_, err := c.change(ctx, `INSERT INTO audit_exports (name, seq, hash, changed) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, changed = excluded.changed`,
			name, at.Seq, at.Hash[:], millis(now))
		return err
	}})
}
