package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const configTemplateColumns = `biz, id, name, file_name, path, owner, grp, filemode, line_separator,
	created, created_by, updated, updated_by`

// configJob makes the job of a change of configuration files, with its audit row.
func configJob(ctx context.Context, audit gozzard.AuditRow, grows bool, run func(context.Context, *conn) error) *job {
	audit = withOrigin(ctx, audit)
	return &job{op: "a configuration file", rows: 2, grows: grows, run: func(ctx context.Context, c *conn) error {
		if err := run(ctx, c); err != nil {
			return err
		}
		return addAudit(ctx, c, audit)
	}}
}

// ConfigTemplates implements configfile.Store.
func (s *Store) ConfigTemplates(ctx context.Context, biz int) (list []record.ConfigTemplate, err error) {
	defer s.timed("config_templates", &err)()
	err = s.read.each(ctx, `SELECT `+configTemplateColumns+` FROM config_templates WHERE biz = $1 ORDER BY id`, []any{biz},
		func(r *sql.Rows) error {
			var t record.ConfigTemplate
			err := r.Scan(&t.Biz, &t.ID, &t.Name, &t.FileName, &t.Path, &t.Owner, &t.Group, &t.Mode, &t.LineSeparator,
				(*stamp)(&t.Created), &t.CreatedBy, (*stamp)(&t.Updated), &t.UpdatedBy)
			list = append(list, t)
			return err
		})
	return list, s.readError("configuration templates", err)
}

// ConfigUses implements configfile.Store.
func (s *Store) ConfigUses(ctx context.Context, biz int) (uses map[int64]record.ConfigUse, err error) {
	defer s.timed("config_uses", &err)()
	uses = map[int64]record.ConfigUse{}
	change := func(id int64, f func(u *record.ConfigUse)) {
		u, known := uses[id]
		if !known {
			u.Bound = map[record.ConfigObjectKind]int{}
		}
		f(&u)
		uses[id] = u
	}

	err = s.read.snapshot(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx,
			`SELECT template, kind, COUNT(*) FROM config_bindings WHERE biz = $1 GROUP BY template, kind`, biz)
		err = scanAll(rows, err, func(r *sql.Rows) error {
			var id int64
			var kind record.ConfigObjectKind
			var n int
			err := r.Scan(&id, &kind, &n)
			change(id, func(u *record.ConfigUse) { u.Bound[kind] = n })
			return err
		})
		if err != nil {
			return err
		}

		for query, set := range map[string]func(u *record.ConfigUse){
			`SELECT DISTINCT template FROM config_versions WHERE biz = $1 AND NOT draft`: func(u *record.ConfigUse) {
				u.Versions = true
			},
			`SELECT DISTINCT template FROM config_instances WHERE biz = $1 AND released`: func(u *record.ConfigUse) {
				u.Released = true
			},
		} {
			rows, err := tx.QueryContext(ctx, query, biz)
			err = scanAll(rows, err, func(r *sql.Rows) error {
				var id int64
				err := r.Scan(&id)
				change(id, set)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return uses, s.readError("uses of configuration templates", err)
}

// AddConfigTemplate implements configfile.Store.
func (s *Store) AddConfigTemplate(ctx context.Context, t *record.ConfigTemplate, taken []int64,
	audit gozzard.AuditRow) (err error) {
	defer s.timed("add_config_template", &err)()
	return s.w.submit(ctx, configJob(ctx, audit, true, func(ctx context.Context, c *conn) error {
		if err := freeConfigName(ctx, c, t); err != nil {
			return err
		}
		var n int
		if _, err := c.one(ctx, `SELECT COUNT(*) FROM config_templates WHERE biz = $1`, []any{t.Biz}, &n); err != nil {
			return err
		}
		if n >= record.MaxConfigTemplates {
			return gozzard.Errorf(gozzard.ErrInvalid,
				"business %d has reached the limit of %d configuration templates: delete some first", t.Biz,
				record.MaxConfigTemplates)
		}

		for first := true; first || slices.Contains(taken, t.ID); first = false {
			var err error
			if t.ID, err = nextNumbers(ctx, c, "config_template", 1); err != nil {
				return err
			}
		}
		_, err := c.change(ctx, `INSERT INTO config_templates (`+configTemplateColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			t.Biz, t.ID, text(t.Name), text(t.FileName), text(t.Path), text(t.Owner), text(t.Group), text(t.Mode),
			text(t.LineSeparator), millis(t.Created), text(t.CreatedBy), millis(t.Updated), text(t.UpdatedBy))
		return err
	}))
}

// freeConfigName rejects a name that another template of the business has.
func freeConfigName(ctx context.Context, c *conn, t *record.ConfigTemplate) error {
	var id int64
	found, err := c.one(ctx, `SELECT id FROM config_templates WHERE biz = $1 AND name = $2`,
		[]any{t.Biz, text(t.Name)}, &id)
	if err == nil && found && id != t.ID {
		err = gozzard.Errorf(gozzard.ErrConflict, "business %d already has a configuration template %q", t.Biz, t.Name)
	}
	return err
}

// SaveConfigTemplate implements configfile.Store.
func (s *Store) SaveConfigTemplate(ctx context.Context, t record.ConfigTemplate, audit gozzard.AuditRow) (err error) {
	defer s.timed("save_config_template", &err)()
	return s.w.submit(ctx, configJob(ctx, audit, true, func(ctx context.Context, c *conn) error {
		if err := freeConfigName(ctx, c, &t); err != nil {
			return err
		}
		n, err := c.change(ctx, `UPDATE config_templates SET name = $3, file_name = $4, path = $5, owner = $6, grp = $7,
			filemode = $8, line_separator = $9, updated = $10, updated_by = $11 WHERE biz = $1 AND id = $2`,
			t.Biz, t.ID, text(t.Name), text(t.FileName), text(t.Path), text(t.Owner), text(t.Group), text(t.Mode),
			text(t.LineSeparator), millis(t.Updated), text(t.UpdatedBy))
		if err == nil && n == 0 {
			err = noConfigTemplate(t.Biz, t.ID)
		}
		return err
	}))
}

func noConfigTemplate(biz int, id int64) error {
	return gozzard.Errorf(gozzard.ErrNotFound, "business %d has no configuration template %d", biz, id)
}

// RemoveConfigTemplate implements configfile.Store.
func (s *Store) RemoveConfigTemplate(ctx context.Context, biz int, id int64, audit gozzard.AuditRow) (err error) {
	defer s.timed("remove_config_template", &err)()
	return s.w.submit(ctx, configJob(ctx, audit, false, func(ctx context.Context, c *conn) error {
		n, err := c.change(ctx, `DELETE FROM config_templates WHERE biz = $1 AND id = $2`, biz, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return noConfigTemplate(biz, id)
		}
		_, err = c.change(ctx, `DELETE FROM config_bindings WHERE biz = $1 AND template = $2`, biz, id)
		return err
	}))
}
