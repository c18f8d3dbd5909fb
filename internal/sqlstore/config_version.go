package sqlstore

import (
	"context"
	"database/sql"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const configVersionColumns = `id, biz, template, description, draft, active, file_format, created, created_by,
	updated, updated_by`

func scanConfigVersion(r *sql.Rows, list *[]record.ConfigVersion) error {
	var v record.ConfigVersion
	var content []byte
	err := r.Scan(&v.ID, &v.Biz, &v.Template, &v.Description, &v.Draft, &v.Active, &v.Format, (*stamp)(&v.Created),
		&v.CreatedBy, (*stamp)(&v.Updated), &v.UpdatedBy, &content)
	v.Content = string(content)
	*list = append(*list, v)
	return err
}

// ConfigVersions implements configfile.Store.
func (s *Store) ConfigVersions(ctx context.Context, biz int, template int64) (list []record.ConfigVersion, err error) {
	defer s.timed("config_versions", &err)()
	err = s.read.each(ctx, `SELECT `+configVersionColumns+`, content FROM config_versions
		WHERE biz = $1 AND template = $2 ORDER BY id DESC`, []any{biz, template},
		func(r *sql.Rows) error { return scanConfigVersion(r, &list) })
	return list, s.readError("versions of a configuration file", err)
}

// ConfigVersion implements configfile.Store.
func (s *Store) ConfigVersion(ctx context.Context, biz int, id int64) (v record.ConfigVersion, err error) {
	defer s.timed("config_version", &err)()
	var list []record.ConfigVersion
	err = s.read.each(ctx, `SELECT `+configVersionColumns+`, content FROM config_versions WHERE id = $1 AND biz = $2`,
		[]any{id, biz}, func(r *sql.Rows) error { return scanConfigVersion(r, &list) })
	if err != nil {
		return v, s.readError("a version of a configuration file", err)
	}
	if len(list) == 0 {
		return v, noConfigVersion(biz, id)
	}
	return list[0], nil
}

func noConfigVersion(biz int, id int64) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "business %d has no version %d of a configuration file", biz, id)
}

// ActiveConfigVersions implements configfile.Store.
func (s *Store) ActiveConfigVersions(ctx context.Context, biz int) (active map[int64]int64, err error) {
	defer s.timed("active_config_versions", &err)()
	active = map[int64]int64{}
	err = s.read.each(ctx, `SELECT template, id FROM config_versions WHERE biz = $1 AND active`, []any{biz},
		func(r *sql.Rows) error {
			var template, id int64
			err := r.Scan(&template, &id)
			active[template] = id
			return err
		})
	return active, s.readError("active versions of configuration files", err)
}

// SaveConfigVersion implements configfile.Store.
func (s *Store) SaveConfigVersion(ctx context.Context, v *record.ConfigVersion, audit gozzard.AuditRow) (err error) {
	defer s.timed("save_config_version", &err)()
	return s.w.submit(ctx, configJob(ctx, audit, true, func(ctx context.Context, c *conn) error {
		// Reject a second draft.
		var draft int64
		found, err := c.one(ctx, `SELECT id FROM config_versions WHERE biz = $1 AND template = $2 AND draft`,
			[]any{v.Biz, v.Template}, &draft)
		if err != nil {
			return err
		}
		if found && draft != v.ID && (v.Draft || v.ID == 0) {
			return gozzard.Errorf(gozzard.ErrConflict, "template %d has a draft already: version %d", v.Template, draft)
		}

		// Only one version is active.
		if v.Active {
			_, err := c.change(ctx, `UPDATE config_versions SET active = $3 WHERE biz = $1 AND template = $2 AND active`,
				v.Biz, v.Template, false)
			if err != nil {
				return err
			}
		}
		if v.ID != 0 {
			return updateConfigVersion(ctx, c, v)
		}
		return insertConfigVersion(ctx, c, v)
	}))
}

func updateConfigVersion(ctx context.Context, c *conn, v *record.ConfigVersion) error {
	n, err := c.change(ctx, `UPDATE config_versions SET description = $3, draft = $4, active = $5, file_format = $6,
		size = $7, content = $8, updated = $9, updated_by = $10 WHERE id = $1 AND biz = $2`,
		v.ID, v.Biz, text(v.Description), v.Draft, v.Active, v.Format, len(v.Content), []byte(v.Content),
		millis(v.Updated), text(v.UpdatedBy))
	if err != nil {
		return err
	}
	if n == 0 {
		return noConfigVersion(v.Biz, v.ID)
	}
	return boundConfigVersions(ctx, c, v)
}

func insertConfigVersion(ctx context.Context, c *conn, v *record.ConfigVersion) (err error) {
	if v.ID, err = nextNumbers(ctx, c, "config_version", 1); err != nil {
		return err
	}
	_, err = c.change(ctx, `INSERT INTO config_versions (`+configVersionColumns+`, size, content)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		v.ID, v.Biz, v.Template, text(v.Description), v.Draft, v.Active, v.Format, millis(v.Created), text(v.CreatedBy),
		millis(v.Updated), text(v.UpdatedBy), len(v.Content), []byte(v.Content))
	if err != nil {
		return err
	}

	// Remove the oldest versions of the template beyond the limit.
	_, err = c.change(ctx, `DELETE FROM config_versions WHERE biz = $1 AND template = $2 AND NOT draft AND NOT active AND id <= (
			SELECT id FROM config_versions WHERE biz = $1 AND template = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)`,
		v.Biz, v.Template, record.MaxConfigVersions)
	if err != nil {
		return err
	}
	return boundConfigVersions(ctx, c, v)
}

// boundConfigVersions rejects a version with which those of its business take too much room. Versions of templates that were
// deleted go before that.
func boundConfigVersions(ctx context.Context, c *conn, v *record.ConfigVersion) error {
	size := func() (n int64, err error) {
		_, err = c.one(ctx, `SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM config_versions WHERE biz = $1`,
			[]any{v.Biz}, &n)
		return n, err
	}
	n, err := size()
	if err != nil || n <= record.MaxConfigBytes {
		return err
	}

	_, err = c.change(ctx, `DELETE FROM config_versions WHERE biz = $1 AND template <> $2
		AND template NOT IN (SELECT id FROM config_templates WHERE biz = $1)`, v.Biz, v.Template)
	if err != nil {
		return err
	}
	if n, err = size(); err == nil && n > record.MaxConfigBytes {
		err = gozzard.Errorf(gozzard.ErrInvalid,
			"the versions of all configuration files of business %d would have %d bytes; at most %d are allowed: delete templates",
			v.Biz, n, record.MaxConfigBytes)
	}
	return err
}
