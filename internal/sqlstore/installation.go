package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Installation is the id of the installation that the record belongs to; "" when none was recorded.
func (s *Store) Installation(ctx context.Context) (id string, err error) {
	defer s.timed("installation", &err)()
	err = s.read.db.QueryRowContext(ctx, `SELECT id FROM installation`).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, s.readError("the installation", err)
}

// Installation is the id of the installation that the audit belongs to.
func (f *AuditFile) Installation(ctx context.Context) (id string, err error) {
	if err := f.db.QueryRowContext(ctx, `SELECT id FROM installation`).Scan(&id); err != nil {
		return "", fmt.Errorf("cannot read the installation: %w", err)
	}
	return id, nil
}

// SetInstallation records the id of the installation, unless there is one.
func (s *Store) SetInstallation(ctx context.Context, id string) (err error) {
	defer s.timed("set_installation", &err)()
	return s.w.submit(ctx, &job{op: "the installation", rows: 1, grows: true,
		run: func(ctx context.Context, c *conn) error {
			_, err := c.change(ctx, `INSERT INTO installation (one, id) VALUES ($1, $2) ON CONFLICT (one) DO NOTHING`,
				true, text(id))
			return err
		}})
}
