package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const configBindingColumns = `id, biz, template, kind, object, created, created_by`

var (
	insertConfigBindings = insertRows("config_bindings", configBindingColumns, "")
	deleteConfigBindings = withRows(`DELETE FROM config_bindings WHERE id IN (SELECT i FROM v)`, "i BIGINT")
	selectConfigBindings = withRows(`SELECT b.id, b.biz, b.template, b.kind, b.object, b.created, b.created_by
		FROM v JOIN config_bindings b ON b.biz = v.z AND b.kind = v.k AND b.object = v.o`,
		"z BIGINT", "k TEXT", "o BIGINT")
)

func scanConfigBinding(r *sql.Rows, list *[]record.ConfigBinding) error {
	var b record.ConfigBinding
	err := r.Scan(&b.ID, &b.Biz, &b.Template, &b.Object.Kind, &b.Object.ID, (*stamp)(&b.Created), &b.CreatedBy)
	b.Updated = b.Created
	*list = append(*list, b)
	return err
}

// ConfigBindings implements configfile.Store.
func (s *Store) ConfigBindings(ctx context.Context, biz int, template int64) (list []record.ConfigBinding, err error) {
	defer s.timed("config_bindings", &err)()
	err = s.read.each(ctx, `SELECT `+configBindingColumns+` FROM config_bindings
		WHERE biz = $1 AND template = $2 ORDER BY id`, []any{biz, template},
		func(r *sql.Rows) error { return scanConfigBinding(r, &list) })
	return list, s.readError("bindings of a configuration file", err)
}

// ConfigBindingsOf implements configfile.Store.
func (s *Store) ConfigBindingsOf(ctx context.Context, biz int,
	objects []record.ConfigObject) (list []record.ConfigBinding, err error) {
	defer s.timed("config_bindings_of", &err)()
	err = s.read.queryRows(ctx, selectConfigBindings, len(objects), func(i int, to []any) []any {
		return append(to, biz, string(objects[i].Kind), objects[i].ID)
	}, func(r *sql.Rows) error { return scanConfigBinding(r, &list) })
	slices.SortFunc(list, func(a, b record.ConfigBinding) int { return cmp.Compare(a.ID, b.ID) })
	return list, s.readError("configuration files of processes", err)
}

// BindConfig implements configfile.Store.
func (s *Store) BindConfig(ctx context.Context, biz int, template int64, object record.ConfigObject,
	want []record.ConfigBinding, audit gozzard.AuditRow) (deleted, created int, err error) {
	defer s.timed("bind_config", &err)()
	j := configJob(ctx, audit, true, func(ctx context.Context, c *conn) error {
		deleted, created, err = replaceBindings(ctx, c, biz, template, object, want)
		return err
	})
	j.rows += len(want)
	if err := s.w.submit(ctx, j); err != nil {
		return 0, 0, err
	}
	return deleted, created, nil
}

// replaceBindings makes the bindings of a template, or with template 0 those of an object, what is wanted.
func replaceBindings(ctx context.Context, c *conn, biz int, template int64, object record.ConfigObject,
	want []record.ConfigBinding) (deleted, created int, err error) {
	// Read what is there.
	type pair struct {
		template int64
		object   record.ConfigObject
	}
	condition, args := `template = $2`, []any{biz, template}
	if template == 0 {
		condition, args = `kind = $2 AND object = $3`, []any{biz, string(object.Kind), object.ID}
	}
	var have []record.ConfigBinding
	err = c.each(ctx, `SELECT `+configBindingColumns+` FROM config_bindings WHERE biz = $1 AND `+condition, args,
		func(r *sql.Rows) error { return scanConfigBinding(r, &have) })
	if err != nil {
		return 0, 0, err
	}

	// Compare it with what is wanted.
	wanted, known := map[pair]bool{}, map[pair]bool{}
	for i := range want {
		wanted[pair{want[i].Template, want[i].Object}] = true
	}
	var gone []int64
	for i := range have {
		p := pair{have[i].Template, have[i].Object}
		if known[p] = true; !wanted[p] {
			gone = append(gone, have[i].ID)
		}
	}
	var add []record.ConfigBinding
	for i := range want {
		if p := (pair{want[i].Template, want[i].Object}); !known[p] {
			known[p] = true
			add = append(add, want[i])
		}
	}

	// Write the difference.
	last, err := nextNumbers(ctx, c, "config_binding", len(add))
	if err != nil {
		return 0, 0, err
	}
	err = c.execRows(ctx, deleteConfigBindings, len(gone), func(i int, to []any) []any { return append(to, gone[i]) })
	if err != nil {
		return 0, 0, err
	}
	err = c.execRows(ctx, insertConfigBindings, len(add), func(i int, to []any) []any {
		b := &add[i]
		return append(to, last-int64(len(add)-1-i), biz, b.Template, string(b.Object.Kind), b.Object.ID,
			millis(b.Created), text(b.CreatedBy))
	})
	if err != nil {
		return 0, 0, err
	}
	return len(gone), len(add), fullTemplates(ctx, c, biz, add)
}

// fullTemplates rejects more bindings of a template than the limit.
func fullTemplates(ctx context.Context, c *conn, biz int, added []record.ConfigBinding) error {
	seen := map[int64]bool{}
	for i := range added {
		id := added[i].Template
		if seen[id] {
			continue
		}
		seen[id] = true
		var n int
		_, err := c.one(ctx, `SELECT COUNT(*) FROM config_bindings WHERE biz = $1 AND template = $2`, []any{biz, id}, &n)
		if err != nil {
			return fmt.Errorf("bindings of template %d: %w", id, err)
		}
		if n > record.MaxConfigBindings {
			return gozzard.Errorf(gozzard.ErrInvalid,
				"template %d would be bound to %d processes and process templates; at most %d are allowed", id, n,
				record.MaxConfigBindings)
		}
	}
	return nil
}
