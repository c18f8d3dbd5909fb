package sqlstore

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

var (
	upsertSets = insertRows("sets", "biz, id, name, env, attributes",
		" ON CONFLICT (biz, id) DO UPDATE SET name = excluded.name, env = excluded.env, attributes = excluded.attributes")

	upsertModules = insertRows("modules", "biz, id, set_id, name, service_template, attributes",
		` ON CONFLICT (biz, id) DO UPDATE SET set_id = excluded.set_id, name = excluded.name,
			service_template = excluded.service_template, attributes = excluded.attributes`)

	upsertServices = insertRows("services", "biz, id, module_id, name, cloud, ip, ipv6, agent_id, processes, host_id, host_attributes",
		` ON CONFLICT (biz, id) DO UPDATE
			SET module_id = excluded.module_id, name = excluded.name, cloud = excluded.cloud, ip = excluded.ip,
			ipv6 = excluded.ipv6, agent_id = excluded.agent_id, processes = excluded.processes, host_id = excluded.host_id,
			host_attributes = excluded.host_attributes`)

	upsertNumbers = insertRows("numbers", "biz, process, module_id, alias, host_num, per, instances",
		` ON CONFLICT (biz, process) DO UPDATE
			SET module_id = excluded.module_id, alias = excluded.alias, host_num = excluded.host_num,
			per = excluded.per, instances = excluded.instances`)

	dropSets     = withRows(`DELETE FROM sets WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropModules  = withRows(`DELETE FROM modules WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropServices = withRows(`DELETE FROM services WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropNumbers  = withRows(`DELETE FROM numbers WHERE (biz, process) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
)

// businessChange is a change of a business on its way into the record. The caller encodes it before the transaction.
type businessChange struct {
	c                 *topology.Change
	source            string
	audit             gozzard.AuditRow
	clouds, templates string
	left              string
	processes         []string // the encoded processes of each in c.PutServices
}

// SaveBusiness implements control.TopologyStore.
func (s *Store) SaveBusiness(ctx context.Context, c topology.Change, source string,
	audit gozzard.AuditRow) (version int64, err error) {
	defer s.timed("save_business", &err)()
	b, err := newBusinessChange(&c, source, withOrigin(ctx, audit))
	if err != nil {
		return 0, fmt.Errorf("cannot encode business %d: %w", c.Biz, err)
	}
	rows := 1 + len(c.PutSets) + len(c.PutModules) + len(c.PutServices) + len(c.PutNumbers) +
		len(c.DropSets) + len(c.DropModules) + len(c.DropServices) + len(c.DropNumbers)
	if err := s.w.submit(ctx, &job{op: "a business", rows: rows, grows: true, run: b.run}); err != nil {
		return 0, err
	}
	return c.Base + 1, nil
}

func newBusinessChange(c *topology.Change, source string, audit gozzard.AuditRow) (*businessChange, error) {
	b := &businessChange{c: c, source: source, audit: audit, processes: make([]string, len(c.PutServices))}
	var err error
	if b.clouds, err = listText(c.Clouds, toCloud); err != nil {
		return nil, err
	}
	if b.templates, err = listText(c.Templates, toTemplate); err != nil {
		return nil, err
	}

	if b.left, err = listText(c.Left, func(s string) string { return s }); err != nil {
		return nil, err
	}

	for i := range c.PutServices {
		if b.processes[i], err = listText(c.PutServices[i].Service.Processes, toProcess); err != nil {
			return nil, err
		}
	}

	return b, nil
}

func (b *businessChange) run(ctx context.Context, c *conn) error {
	// Reject the change if the business has another version.
	if err := b.putHead(ctx, c); err != nil {
		return err
	}
	if err := spendQuotas(ctx, c, b.c.Charge); err != nil {
		return err
	}

	// Record the change in the audit and in the history of the business.
	n, err := nextNumber(ctx, c)
	if err != nil {
		return err
	}

	a := b.audit
	a.Seq = n
	if err := insertAudit(ctx, c, &a); err != nil {
		return err
	}
	if err := b.putVersion(ctx, c, n); err != nil {
		return err
	}
	if err := addDefinitionBytes(ctx, c, a.Caller.App, b.c.NewBytes, a.At); err != nil {
		return err
	}

	// Write before removing: a module that moves needs its new set before the old one is removed.
	if err := b.putAll(ctx, c); err != nil {
		return err
	}
	if err := b.dropAll(ctx, c); err != nil {
		return err
	}
	return c.bump(ctx, record.KindTopology)
}

// putHead writes the row of the business itself. It rejects the change when the business has another version than the
// change starts from, so that of two concurrent changes one succeeds.
func (b *businessChange) putHead(ctx context.Context, c *conn) error {
	query := `UPDATE businesses SET version = $2, source = $3, at = $4, name = $5, clouds = $6, templates = $7, left_out = $8
		WHERE biz = $1 AND version = $2 - 1`

	if b.c.Base == 0 {
		query = `INSERT INTO businesses (biz, version, source, at, name, clouds, templates, left_out)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (biz) DO NOTHING`
	}

	n, err := c.change(ctx, query, b.c.Biz, b.c.Base+1, text(b.source), millis(b.audit.At), text(b.c.Name), b.clouds,
		b.templates, text(b.left))
	if err != nil || n == 1 {
		return err
	}

	// Say what the recorded version is.
	var version int64
	found, err := c.one(ctx, `SELECT version FROM businesses WHERE biz = $1`, []any{b.c.Biz}, &version)
	if err != nil {
		return err
	}
	if !found {
		return gozzard.Errorf(gozzard.ErrConflict,
			"business %d does not exist, but the change starts from its version %d; nothing was changed",
			b.c.Biz, b.c.Base)
	}

	return gozzard.Errorf(gozzard.ErrConflict,
		"business %d has version %d, but the change starts from version %d; nothing was changed: "+
			"read the business again and repeat the change",
		b.c.Biz, version, b.c.Base)
}

// putVersion adds the new version to the history of the business: the caller, and how much changed. audit is the number
// of its audit row.
func (b *businessChange) putVersion(ctx context.Context, c *conn, audit int64) error {
	caller := b.audit.Caller
	_, err := c.change(ctx, `INSERT INTO business_versions (biz, version, at, source, app, caller, asserted, audit_seq,
		put_sets, put_modules, put_services, put_numbers,
		dropped_sets, dropped_modules, dropped_services, dropped_numbers)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		b.c.Biz, b.c.Base+1, millis(b.audit.At), text(b.source),
		text(caller.App), text(caller.User), caller.Asserted, audit,
		len(b.c.PutSets), len(b.c.PutModules), len(b.c.PutServices), len(b.c.PutNumbers),
		len(b.c.DropSets), len(b.c.DropModules), len(b.c.DropServices), len(b.c.DropNumbers))
	return err
}

// putAll writes from the top down: the foreign keys allow no other order.
func (b *businessChange) putAll(ctx context.Context, c *conn) error {
	biz := b.c.Biz
	err := c.execRows(ctx, upsertSets, len(b.c.PutSets), func(i int, to []any) []any {
		x := &b.c.PutSets[i]
		return append(to, biz, x.ID, text(x.Name), int64(x.Env), text(string(x.Attributes)))
	})
	if err != nil {
		return fmt.Errorf("sets: %w", err)
	}

	err = c.execRows(ctx, upsertModules, len(b.c.PutModules), func(i int, to []any) []any {
		x := &b.c.PutModules[i]
		return append(to, biz, x.Module.ID, x.Set, text(x.Module.Name), x.Module.ServiceTemplate,
			text(string(x.Module.Attributes)))
	})
	if err != nil {
		return fmt.Errorf("modules: %w", err)
	}

	err = c.execRows(ctx, upsertServices, len(b.c.PutServices), func(i int, to []any) []any {
		x := &b.c.PutServices[i]
		h := &x.Service.Host
		return append(to, biz, x.Service.ID, x.Module, text(x.Service.Name), h.Cloud, ipText(h.IP), ipText(h.IPv6),
			text(string(h.Agent)), b.processes[i], h.ID, text(string(x.Service.HostAttributes)))
	})
	if err != nil {
		return fmt.Errorf("service instances: %w", err)
	}

	err = c.execRows(ctx, upsertNumbers, len(b.c.PutNumbers), func(i int, to []any) []any {
		x := &b.c.PutNumbers[i]
		return append(to, biz, x.Process, x.Module, text(x.Alias), x.HostNum, x.Per, x.Count)
	})
	if err != nil {
		return fmt.Errorf("instance numbers: %w", err)
	}

	return nil
}

// dropAll removes from the bottom up: the foreign keys allow no other order.
func (b *businessChange) dropAll(ctx context.Context, c *conn) error {
	for _, d := range [...]struct {
		what string
		bulk *bulk
		ids  []int
	}{
		{"instance numbers", dropNumbers, b.c.DropNumbers},
		{"service instances", dropServices, b.c.DropServices},
		{"modules", dropModules, b.c.DropModules},
		{"sets", dropSets, b.c.DropSets},
	} {
		err := c.execRows(ctx, d.bulk, len(d.ids), func(i int, to []any) []any { return append(to, b.c.Biz, d.ids[i]) })
		if err != nil {
			return fmt.Errorf("removed %s: %w", d.what, err)
		}
	}
	return nil
}
