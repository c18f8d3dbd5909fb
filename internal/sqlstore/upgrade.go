package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// Upgrades are stored in the tables rolls and roll_hosts.
var (
	insertUpgradeHosts = insertRows("roll_hosts", "roll, place, agent_id, stage, state, reason, asked", "")

	updateUpgradeHosts = withRows(`UPDATE roll_hosts SET state = v.s, reason = v.r, asked = v.t
		FROM v WHERE roll_hosts.roll = v.i AND roll_hosts.agent_id = v.a`,
		"i BIGINT", "a TEXT", "s TEXT", "r TEXT", "t BIGINT")
)

const (
	upgradeColumns = "id, version, stages, state, reason, created, changed, created_by, approved_by"
	openUpgrades   = `state IN ('waiting', 'running')`
)

// upgradeRow is the audit row of an entry.
func upgradeRow(ctx context.Context, audit upgrade.AuditEntry) gozzard.AuditRow {
	return withOrigin(ctx, gozzard.AuditRow{At: audit.At, Caller: audit.Caller, Act: audit.What, Targets: audit.Targets})
}

// auditUpgrade writes an audit row about an upgrade of hosts, or about none, unless the row has no act.
func auditUpgrade(ctx context.Context, c *conn, row gozzard.AuditRow, hosts []upgrade.Host) error {
	if row.Act == "" {
		return nil
	}
	if len(hosts) > 0 {
		attempts := make([]gozzard.Attempt, len(hosts))
		for i := range hosts {
			attempts[i].Agent = hosts[i].Agent
		}
		row.SetHosts(gozzard.HostLines(attempts))
	}
	return addAudit(ctx, c, row)
}

// AddUpgrade implements upgrade.Store.
func (s *Store) AddUpgrade(ctx context.Context, r *upgrade.Upgrade, audit upgrade.AuditEntry) (err error) {
	defer s.timed("add_roll", &err)()
	row := upgradeRow(ctx, audit)
	stages, err := json.Marshal(r.Stages)
	if err != nil {
		return fmt.Errorf("cannot encode the stages of an upgrade: %w", err)
	}

	var id int64
	err = s.w.submit(ctx, &job{op: "an upgrade", rows: len(r.Hosts) + 1, grows: true,
		run: func(ctx context.Context, c *conn) error {
			// Reject the upgrade while another one is open.
			var other int64
			open, err := c.one(ctx, `SELECT id FROM rolls WHERE `+openUpgrades, nil, &other)
			if err != nil {
				return err
			}
			if open {
				return gozzard.Errorf(gozzard.ErrConflict, "upgrade %d is not finished", other)
			}

			// Record it with its hosts.
			if id, err = nextNumbers(ctx, c, "roll", 1); err != nil {
				return err
			}

			_, err = c.change(ctx, `INSERT INTO rolls (`+upgradeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
				id, text(r.Version), string(stages), string(r.State), text(r.Reason),
				millis(r.Created), millis(r.Changed), text(r.By), text(r.Approved))
			if err != nil {
				return err
			}

			err = c.execRows(ctx, insertUpgradeHosts, len(r.Hosts), func(i int, to []any) []any {
				h := &r.Hosts[i]
				return append(to, id, i, text(string(h.Agent)), h.Stage, string(h.State), text(h.Reason),
					millis(h.Asked))
			})
			if err != nil {
				return err
			}

			if err := c.bump(ctx, record.KindReleases); err != nil {
				return err
			}
			return auditUpgrade(ctx, c, row, r.Hosts)
		}})
	if err == nil {
		r.ID = id
	}

	return err
}

// SaveUpgrade implements upgrade.Store.
func (s *Store) SaveUpgrade(ctx context.Context, r *upgrade.Upgrade, hosts []upgrade.Host,
	audit upgrade.AuditEntry) (err error) {
	defer s.timed("save_roll", &err)()
	row := upgradeRow(ctx, audit)

	return s.w.submit(ctx, &job{op: "the state of an upgrade", rows: len(hosts) + 1,
		run: func(ctx context.Context, c *conn) error {
			n, err := c.change(ctx,
				`UPDATE rolls SET state = $2, reason = $3, changed = $4, approved_by = $5
					WHERE id = $1 AND `+openUpgrades,
				r.ID, string(r.State), text(r.Reason), millis(r.Changed), text(r.Approved))
			if err != nil {
				return err
			}
			if n == 0 {
				return gozzard.Errorf(gozzard.ErrConflict, "upgrade %d has ended", r.ID)
			}

			err = c.execRows(ctx, updateUpgradeHosts, len(hosts), func(i int, to []any) []any {
				h := &hosts[i]
				return append(to, r.ID, text(string(h.Agent)), string(h.State), text(h.Reason), millis(h.Asked))
			})
			if err != nil {
				return err
			}

			// The server that runs the upgrade knows its own steps.
			if audit.What != "" {
				if err := c.bump(ctx, record.KindReleases); err != nil {
					return err
				}
			}
			return auditUpgrade(ctx, c, row, hosts)
		}})
}

// Upgrades implements upgrade.Store.
func (s *Store) Upgrades(ctx context.Context, limit int) (list []upgrade.Upgrade, err error) {
	defer s.timed("rolls", &err)()
	rows, err := s.read.db.QueryContext(ctx, `SELECT `+upgradeColumns+` FROM rolls ORDER BY id DESC LIMIT $1`, limit)
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
		list[i].Hosts, err = s.upgradeHosts(ctx, list[i].ID)
	}

	return list, s.readError("upgrades", err)
}

func (s *Store) upgradeHosts(ctx context.Context, id int64) (hosts []upgrade.Host, err error) {
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
