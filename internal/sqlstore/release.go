package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/upgrade"
)

var _ upgrade.Store = (*Store)(nil)

var (
	insertRollHosts = insert("roll_hosts", "roll, place, agent_id, stage, state, reason, asked", "")

	updateRollHosts = with(`UPDATE roll_hosts SET state = v.s, reason = v.r, asked = v.t FROM v WHERE roll_hosts.roll = v.i AND roll_hosts.agent_id = v.a`,
		"i BIGINT", "a TEXT", "s TEXT", "r TEXT", "t BIGINT")
)

const (
	rollColumns = "id, version, stages, state, reason, created, changed, created_by, approved_by"
	openRolls   = `state IN ('waiting', 'running')`
)

// rollAct writes the audit row of an act, if it has one.
func rollAct(ctx context.Context, c *conn, act upgrade.AuditEntry) error {
	if act.What == "" {
		return nil
	}
	n, err := draw(ctx, c)
	if err != nil {
		return err
	}
	return insertAudit(ctx, c, &gozzard.AuditRow{Seq: n, At: act.At, Caller: act.Caller, Act: act.What,
		Targets: act.Targets})
}

// AddRelease implements roll.Store.
func (s *Store) AddRelease(ctx context.Context, r upgrade.Release, act upgrade.AuditEntry) (err error) {
	defer s.timed("add_release", &err)()

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
			return gozzard.Errorf(gozzard.ErrConflict, "release %s was published with another manifest", r.Version)
		}

		_, err = c.change(ctx,
			`INSERT INTO releases (version, manifest, signature, published, published_by) VALUES ($1, $2, $3, $4, $5)`,
			text(r.Version), r.Manifest, r.Signature, millis(r.Published), text(r.By))
		if err != nil {
			return err
		}

		return rollAct(ctx, c, act)
	}})
}

// RemoveRelease implements roll.Store.
func (s *Store) RemoveRelease(ctx context.Context, version string, act upgrade.AuditEntry) (err error) {
	defer s.timed("remove_release", &err)()

	return s.w.submit(ctx, &job{op: "a release", rows: 1, run: func(ctx context.Context, c *conn) error {
		var id int64
		open, err := c.one(ctx, `SELECT id FROM rolls WHERE version = $1 AND `+openRolls, []any{text(version)}, &id)
		if err != nil {
			return err
		}
		if open {
			return gozzard.Errorf(gozzard.ErrConflict, "roll %d brings release %s to hosts: stop it first", id, version)
		}

		n, err := c.change(ctx, `DELETE FROM releases WHERE version = $1`, text(version))
		if err != nil {
			return err
		}
		if n == 0 {
			return gozzard.Errorf(gozzard.ErrNotFound, "no release %s was published", version)
		}

		return rollAct(ctx, c, act)
	}})
}

// Releases implements roll.Store.
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

// AddUpgrade implements roll.Store.
func (s *Store) AddUpgrade(ctx context.Context, r *upgrade.Upgrade, act upgrade.AuditEntry) (err error) {
	defer s.timed("add_roll", &err)()
	stages, err := json.Marshal(r.Stages)
	if err != nil {
		return fmt.Errorf("cannot encode the stages of a roll: %w", err)
	}

	var id int64
	err = s.w.submit(ctx, &job{op: "a roll", rows: len(r.Hosts) + 1, grows: true,
		run: func(ctx context.Context, c *conn) error {
			var other int64
			open, err := c.one(ctx, `SELECT id FROM rolls WHERE `+openRolls, nil, &other)
			if err != nil {
				return err
			}
			if open {
				return gozzard.Errorf(gozzard.ErrConflict, "roll %d is open", other)
			}
			if id, err = drawMany(ctx, c, "roll", 1); err != nil {
				return err
			}

			_, err = c.change(ctx, `INSERT INTO rolls (`+rollColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, id,
				text(r.Version), string(stages),
				string(r.State), text(r.Reason), millis(r.Created), millis(r.Changed), text(r.By), text(r.Approved))
			if err != nil {
				return err
			}

			err = c.put(ctx, insertRollHosts, len(r.Hosts), func(i int, to []any) []any {
				h := &r.Hosts[i]
				return append(to, id, i, text(string(h.Agent)), h.Stage, string(h.State), text(h.Reason), millis(h.Asked))
			})

			if err != nil {
				return err
			}

			return rollAct(ctx, c, act)
		}})

	if err == nil {
		r.ID = id
	}

	return err
}

// SaveUpgrade implements roll.Store.
func (s *Store) SaveUpgrade(ctx context.Context, r *upgrade.Upgrade, hosts []upgrade.Host,
	act upgrade.AuditEntry) (err error) {
	defer s.timed("save_roll", &err)()

	return s.w.submit(ctx, &job{op: "the state of a roll", rows: len(hosts) + 1,
		run: func(ctx context.Context, c *conn) error {
			n, err := c.change(ctx,
				`UPDATE rolls SET state = $2, reason = $3, changed = $4, approved_by = $5 WHERE id = $1 AND `+openRolls,
				r.ID, string(r.State), text(r.Reason), millis(r.Changed), text(r.Approved))
			if err != nil {
				return err
			}
			if n == 0 {
				return gozzard.Errorf(gozzard.ErrConflict, "roll %d has ended", r.ID)
			}

			err = c.put(ctx, updateRollHosts, len(hosts), func(i int, to []any) []any {
				h := &hosts[i]
				return append(to, r.ID, text(string(h.Agent)), string(h.State), text(h.Reason), millis(h.Asked))
			})

			if err != nil {
				return err
			}

			return rollAct(ctx, c, act)
		}})
}

// Upgrades implements roll.Store.
func (s *Store) Upgrades(ctx context.Context, limit int) (list []upgrade.Upgrade, err error) {
	defer s.timed("rolls", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+rollColumns+` FROM rolls ORDER BY id DESC LIMIT $1`, limit)
	err = scanAll(rows, err, func(q *sql.Rows) error {
		var r upgrade.Upgrade
		var stages string
		err := q.Scan(&r.ID, &r.Version, &stages, &r.State, &r.Reason, (*stamp)(&r.Created), (*stamp)(&r.Changed),
			&r.By, &r.Approved)
		if err == nil {
			err = json.Unmarshal([]byte(stages), &r.Stages)
		}
		list = append(list, r)
		return err
	})

	for i := range list {
		if err != nil {
			break
		}
		list[i].Hosts, err = s.rollHosts(ctx, list[i].ID)
	}

	return list, s.readError("rolls", err)
}

func (s *Store) rollHosts(ctx context.Context, id int64) (hosts []upgrade.Host, err error) {
	rows, err := s.read.db.QueryContext(ctx,
		`SELECT agent_id, stage, state, reason, asked FROM roll_hosts WHERE roll = $1 ORDER BY place`, id)
	err = scanAll(rows, err, func(q *sql.Rows) error {
		var h upgrade.Host
		err := q.Scan(&h.Agent, &h.Stage, &h.State, &h.Reason, (*stamp)(&h.Asked))
		hosts = append(hosts, h)
		return err
	})
	return hosts, err
}
