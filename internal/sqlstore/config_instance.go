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

const configInstanceColumns = `id, biz, template, version, process, inst, name, path, hash, latest, released, created, created_by`

var (
	insertConfigInstances = insertRows("config_instances", configInstanceColumns, "")
	insertConfigTexts     = insertRows("config_texts", "biz, hash, size, body", " ON CONFLICT (biz, hash) DO NOTHING")
	endConfigLatest       = withRows(`UPDATE config_instances SET latest = FALSE FROM v WHERE config_instances.biz = v.b
		AND config_instances.process = v.p AND config_instances.inst = v.n AND config_instances.template = v.t AND config_instances.latest`,
		"b BIGINT", "p BIGINT", "n BIGINT", "t BIGINT")
	selectConfigSlots = withRows(`SELECT c.id, c.biz, c.template, c.version, c.process, c.inst, c.name, c.path, c.hash, c.latest, c.released,
		c.created, c.created_by FROM v JOIN config_instances c ON c.biz = v.b AND c.process = v.p AND c.inst = v.n AND c.template = v.t`, "b BIGINT", "p BIGINT", "n BIGINT", "t BIGINT")
	releaseConfigs = withRows(`UPDATE config_instances SET released = TRUE FROM v
		WHERE config_instances.id = v.i AND config_instances.biz = v.b`, "i BIGINT", "b BIGINT")
)

// removeOldConfigs removes all but the newest files of a process instance and template; the newest released one stays.
const removeOldConfigs = `DELETE FROM config_instances WHERE biz = $1 AND process = $2 AND inst = $3 AND template = $4
	AND id <= (SELECT id FROM config_instances WHERE biz = $1 AND process = $2 AND inst = $3 AND template = $4
		ORDER BY id DESC LIMIT 1 OFFSET $5)
	AND id <> COALESCE((SELECT MAX(id) FROM config_instances WHERE biz = $1 AND process = $2 AND inst = $3 AND template = $4 AND released), 0)
	RETURNING id, hash`

func scanConfigInstance(r *sql.Rows, list *[]record.ConfigInstance) error {
	var c record.ConfigInstance
	var hash []byte
	err := r.Scan(&c.ID, &c.Biz, &c.Template, &c.Version, &c.Process, &c.Inst, &c.Name, &c.Path, &hash, &c.Latest, &c.Released,
		(*stamp)(&c.Created), &c.CreatedBy)
	if err == nil && len(hash) != len(c.Hash) {
		err = fmt.Errorf("rendered file %d has a digest of %d bytes", c.ID, len(hash))
	}
	copy(c.Hash[:], hash)
	*list = append(*list, c)
	return err
}

// AddConfigInstances implements configfile.Store.
func (s *Store) AddConfigInstances(ctx context.Context, biz int, list []record.ConfigInstance) (err error) {
	defer s.timed("add_config_instances", &err)()
	return s.w.submit(ctx, &job{op: "rendered files", rows: 3*len(list) + 1, grows: true, run: func(ctx context.Context, c *conn) error {
		// Write the contents that are new, if there is room.
		err := c.execRows(ctx, insertConfigTexts, len(list), func(i int, to []any) []any {
			return append(to, biz, list[i].Hash[:], len(list[i].Content), []byte(list[i].Content))
		})
		if err != nil {
			return fmt.Errorf("contents: %w", err)
		}

		// Write the files, each as the newest of its place.
		last, err := nextNumbers(ctx, c, "config_instance", len(list))
		if err != nil {
			return err
		}
		err = c.execRows(ctx, endConfigLatest, len(list), func(i int, to []any) []any {
			return append(to, biz, list[i].Process, list[i].Inst, list[i].Template)
		})
		if err != nil {
			return err
		}
		for i := range list {
			list[i].ID, list[i].Biz, list[i].Latest = last-int64(len(list)-1-i), biz, true
		}
		err = c.execRows(ctx, insertConfigInstances, len(list), func(i int, to []any) []any {
			x := &list[i]
			return append(to, x.ID, biz, x.Template, x.Version, x.Process, x.Inst, text(x.Name), text(x.Path), x.Hash[:], true, x.Released,
				millis(x.Created), text(x.CreatedBy))
		})
		if err != nil {
			return err
		}

		for i := range list {
			if err := removeOldInstances(ctx, c, &list[i]); err != nil {
				return err
			}
		}
		return boundConfigTexts(ctx, c, biz)
	}})
}

// removeOldInstances removes what is too old at the place of a file, with contents that nothing else has.
func removeOldInstances(ctx context.Context, c *conn, of *record.ConfigInstance) error {
	type old struct {
		id   int64
		hash []byte
	}
	var gone []old
	err := c.each(ctx, removeOldConfigs, []any{of.Biz, of.Process, of.Inst, of.Template, record.MaxConfigKept}, func(r *sql.Rows) error {
		var o old
		err := r.Scan(&o.id, &o.hash)
		gone = append(gone, o)
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range gone {
		if _, err := c.change(ctx, `DELETE FROM config_snapshots WHERE instance = $1`, o.id); err != nil {
			return err
		}
		_, err := c.change(ctx, `DELETE FROM config_texts WHERE biz = $1 AND hash = $2
			AND NOT EXISTS (SELECT 1 FROM config_instances WHERE biz = $1 AND hash = $2)`, of.Biz, o.hash)
		if err != nil {
			return err
		}
	}
	return nil
}

// boundConfigTexts rejects rendered files that take too much room together.
func boundConfigTexts(ctx context.Context, c *conn, biz int) error {
	var n int64
	_, err := c.one(ctx, `SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM config_texts WHERE biz = $1`, []any{biz}, &n)
	if err == nil && n > record.MaxConfigRendered {
		err = gozzard.Errorf(gozzard.ErrInvalid,
			"the rendered configuration files of business %d would have %d bytes; at most %d are allowed", biz, n,
			record.MaxConfigRendered)
	}
	return err
}

// ConfigInstances implements configfile.Store.
func (s *Store) ConfigInstances(ctx context.Context, biz int, slots []record.ConfigSlot) (list []record.ConfigInstance, err error) {
	defer s.timed("config_instances", &err)()
	err = s.read.queryRows(ctx, selectConfigSlots, len(slots), func(i int, to []any) []any {
		return append(to, biz, slots[i].Process, slots[i].Inst, slots[i].Template)
	}, func(r *sql.Rows) error { return scanConfigInstance(r, &list) })
	slices.SortFunc(list, func(a, b record.ConfigInstance) int { return cmp.Compare(a.ID, b.ID) })
	return list, s.readError("rendered files", err)
}

// ConfigInstance implements configfile.Store.
func (s *Store) ConfigInstance(ctx context.Context, biz int, id int64) (c record.ConfigInstance, err error) {
	defer s.timed("config_instance", &err)()
	var list []record.ConfigInstance
	err = s.read.each(ctx, `SELECT `+configInstanceColumns+` FROM config_instances WHERE id = $1 AND biz = $2`, []any{id, biz},
		func(r *sql.Rows) error { return scanConfigInstance(r, &list) })
	if err != nil {
		return c, s.readError("a rendered file", err)
	}
	if len(list) == 0 {
		return c, gozzard.Errorf(gozzard.ErrNotFound, "business %d has no rendered configuration file %d", biz, id)
	}
	return list[0], nil
}

// ConfigTexts implements configfile.Store.
func (s *Store) ConfigTexts(ctx context.Context, biz int, hashes [][32]byte) (texts map[[32]byte]string, err error) {
	defer s.timed("config_texts", &err)()
	texts = map[[32]byte]string{}
	for _, hash := range hashes {
		err = s.read.each(ctx, `SELECT body FROM config_texts WHERE biz = $1 AND hash = $2`, []any{biz, hash[:]}, func(r *sql.Rows) error {
			var body []byte
			err := r.Scan(&body)
			texts[hash] = string(body)
			return err
		})
		if err != nil {
			return nil, s.readError("contents of rendered files", err)
		}
	}
	return texts, nil
}

// ReleaseConfigs implements configfile.Store.
func (s *Store) ReleaseConfigs(ctx context.Context, biz int, ids []int64) (err error) {
	defer s.timed("release_configs", &err)()
	return s.w.submit(ctx, &job{op: "released files", rows: len(ids), run: func(ctx context.Context, c *conn) error {
		return c.execRows(ctx, releaseConfigs, len(ids), func(i int, to []any) []any { return append(to, ids[i], biz) })
	}})
}

// SaveConfigSnapshot implements configfile.Store.
func (s *Store) SaveConfigSnapshot(ctx context.Context, x *record.ConfigSnapshot) (err error) {
	defer s.timed("save_config_snapshot", &err)()
	return s.w.submit(ctx, &job{op: "a file of a host", rows: 1, grows: true, run: func(ctx context.Context, c *conn) error {
		id, err := nextNumbers(ctx, c, "config_snapshot", 1)
		if err != nil {
			return err
		}
		_, err = c.change(ctx, `INSERT INTO config_snapshots (instance, id, biz, job, hash, created, updated, body)
			VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
			ON CONFLICT (instance) DO UPDATE SET job = excluded.job, hash = excluded.hash, updated = excluded.updated, body = excluded.body`,
			x.Instance, id, x.Biz, x.Job, x.Hash[:], millis(x.Updated), []byte(x.Content))
		return err
	}})
}

// ConfigSnapshot implements configfile.Store.
func (s *Store) ConfigSnapshot(ctx context.Context, biz int, instance int64) (x *record.ConfigSnapshot, err error) {
	defer s.timed("config_snapshot", &err)()
	err = s.read.each(ctx, `SELECT id, job, hash, created, updated, body FROM config_snapshots WHERE instance = $1 AND biz = $2`,
		[]any{instance, biz}, func(r *sql.Rows) error {
			x = &record.ConfigSnapshot{Biz: biz, Instance: instance}
			var hash, body []byte
			err := r.Scan(&x.ID, &x.Job, &hash, (*stamp)(&x.Created), (*stamp)(&x.Updated), &body)
			copy(x.Hash[:], hash)
			x.Content = string(body)
			return err
		})
	return x, s.readError("a file of a host", err)
}
