package sqlstore

import (
	"bytes"
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/upgrade"
)

var _ upgrade.Store = (*Store)(nil)

// AddRelease implements upgrade.Store.
func (s *Store) AddRelease(ctx context.Context, r upgrade.Release, audit upgrade.AuditEntry) (err error) {
	defer s.timed("add_release", &err)()
	row := upgradeRow(ctx, audit)

	return s.w.submit(ctx, &job{op: "a release", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		var manifest []byte
		known, err := c.one(ctx, `SELECT manifest FROM releases WHERE version = $1`+c.d.forUpdate,
			[]any{text(r.Version)}, &manifest)
		if err != nil {
			return err
		}
		if known && bytes.Equal(manifest, r.Manifest) {
			return nil
		}
		if known {
			return gozzard.Errorf(gozzard.ErrConflict, "release %s is already published with another manifest",
				r.Version)
		}

		_, err = c.change(ctx,
			`INSERT INTO releases (version, manifest, signature, published, published_by) VALUES ($1, $2, $3, $4, $5)`,
			text(r.Version), r.Manifest, r.Signature, millis(r.Published), text(r.By))
		if err != nil {
			return err
		}

		if err := c.bump(ctx, record.KindReleases); err != nil {
			return err
		}
		return auditUpgrade(ctx, c, row, nil)
	}})
}

// RemoveRelease implements upgrade.Store.
func (s *Store) RemoveRelease(ctx context.Context, version string, audit upgrade.AuditEntry) (err error) {
	defer s.timed("remove_release", &err)()
	row := upgradeRow(ctx, audit)

	return s.w.submit(ctx, &job{op: "a release", rows: 1, run: func(ctx context.Context, c *conn) error {
		var id int64
		open, err := c.one(ctx, `SELECT id FROM rolls WHERE version = $1 AND `+openUpgrades, []any{text(version)}, &id)
		if err != nil {
			return err
		}
		if open {
			return gozzard.Errorf(gozzard.ErrConflict, "upgrade %d brings release %s to hosts: stop it first",
				id, version)
		}

		n, err := c.change(ctx, `DELETE FROM releases WHERE version = $1`, text(version))
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "release %s is not published", version)
		}

		if err := c.bump(ctx, record.KindReleases); err != nil {
			return err
		}
		return auditUpgrade(ctx, c, row, nil)
	}})
}

// Releases implements upgrade.Store.
func (s *Store) Releases(ctx context.Context) (list []upgrade.Release, err error) {
	defer s.timed("releases", &err)()
	rows, err := s.read.db.QueryContext(ctx,
		`SELECT version, manifest, signature, published, published_by FROM releases ORDER BY published DESC, version`)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var p upgrade.Release
		err := r.Scan(&p.Version, &p.Manifest, &p.Signature, (*stamp)(&p.Published), &p.By)
		list = append(list, p)
		return err
	})
	return list, s.readError("releases", err)
}
