package sqlstore

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

var (
	upsertSets = insert("sets", "biz, id, name, env",
		" ON CONFLICT (biz, id) DO UPDATE SET name = excluded.name, env = excluded.env")

	upsertModules = insert("modules", "biz, id, set_id, name, service_template",
		" ON CONFLICT (biz, id) DO UPDATE SET set_id = excluded.set_id, name = excluded.name, service_template = excluded.service_template")

	upsertServices = insert("services", "biz, id, module_id, name, cloud, ip, ipv6, agent_id, processes",
		` ON CONFLICT (biz, id) DO UPDATE SET module_id = excluded.module_id, name = excluded.name, cloud = excluded.cloud, ip = excluded.ip,
			ipv6 = excluded.ipv6, agent_id = excluded.agent_id, processes = excluded.processes`)

	upsertNumbers = insert("numbers", "biz, process, module_id, alias, host_num, per, instances",
		` ON CONFLICT (biz, process) DO UPDATE SET module_id = excluded.module_id, alias = excluded.alias, host_num = excluded.host_num,
			per = excluded.per, instances = excluded.instances`)

	dropSets     = with(`DELETE FROM sets WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropModules  = with(`DELETE FROM modules WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropServices = with(`DELETE FROM services WHERE (biz, id) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
	dropNumbers  = with(`DELETE FROM numbers WHERE (biz, process) IN (SELECT b, i FROM v)`, "b BIGINT", "i BIGINT")
)

// businessChange is a change made ready for the writer by its caller.
type businessChange struct {
	c                 *topology.Change
	source            string
	audit             gozzard.AuditRow
	clouds, templates string
	processes         []string // of c.PutServices
}

// SaveBusiness implements control.TopologyStore.
func (s *Store) SaveBusiness(ctx context.Context, c topology.Change, source string,
	audit gozzard.AuditRow) (version int64, err error) {
	defer s.timed("save_business", &err)()
	b, err := newBusinessChange(&c, source, audit)
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

	for i := range c.PutServices {
		if b.processes[i], err = listText(c.PutServices[i].Service.Processes, toProcess); err != nil {
			return nil, err
		}
	}

	return b, nil
}

func (b *businessChange) run(ctx context.Context, c *conn) error {
	if err := b.putHead(ctx, c); err != nil {
		return err
	}

	n, err := draw(ctx, c)
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
	// from the top down, so that what is moved finds its new place, before the old one goes
	if err := b.putAll(ctx, c); err != nil {
		return err
	}

	return b.dropAll(ctx, c)
}

// putHead is what decides between two who change one business at a time.
func (b *businessChange) putHead(ctx context.Context, c *conn) error {
	query := `UPDATE businesses SET version = $2, source = $3, at = $4, name = $5, clouds = $6, templates = $7 WHERE biz = $1 AND version = $2 - 1`

	if b.c.Base == 0 {
		query = `INSERT INTO businesses (biz, version, source, at, name, clouds, templates) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (biz) DO NOTHING`
	}

	n, err := c.change(ctx, query, b.c.Biz, b.c.Base+1, text(b.source), millis(b.audit.At), text(b.c.Name), b.clouds,
		b.templates)
	if err != nil || n == 1 {
		return err
	}

	var version int64
	found, err := c.one(ctx, `SELECT version FROM businesses WHERE biz = $1`, []any{b.c.Biz}, &version)
	if err != nil {
		return err
	}
	if !found {
		return gozzard.Errorf(gozzard.ErrConflict,
			"business %d is not recorded, the change starts from its version %d; nothing was changed", b.c.Biz,
			b.c.Base)
	}

	return gozzard.Errorf(gozzard.ErrConflict,
		"business %d has version %d, the change starts from %d: somebody else was faster; nothing was changed",
		b.c.Biz, version, b.c.Base)
}

func (b *businessChange) putVersion(ctx context.Context, c *conn, audit int64) error {
	who := b.audit.Caller
	_, err := c.change(ctx, `INSERT INTO business_versions (biz, version, at, source, app, caller, asserted, audit_seq, put_sets, put_modules, put_services,
		put_numbers, dropped_sets, dropped_modules, dropped_services, dropped_numbers)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		b.c.Biz, b.c.Base+1, millis(b.audit.At), text(b.source), text(who.App), text(who.User), who.Asserted, audit,
		len(b.c.PutSets), len(b.c.PutModules),
		len(b.c.PutServices), len(b.c.PutNumbers), len(b.c.DropSets), len(b.c.DropModules), len(b.c.DropServices),
		len(b.c.DropNumbers))
	return err
}

func (b *businessChange) putAll(ctx context.Context, c *conn) error {
	biz := b.c.Biz
	err := c.put(ctx, upsertSets, len(b.c.PutSets), func(i int, to []any) []any {
		x := &b.c.PutSets[i]
		return append(to, biz, x.ID, text(x.Name), int64(x.Env))
	})

	if err != nil {
		return fmt.Errorf("sets: %w", err)
	}

	err = c.put(ctx, upsertModules, len(b.c.PutModules), func(i int, to []any) []any {
		x := &b.c.PutModules[i]
		return append(to, biz, x.Module.ID, x.Set, text(x.Module.Name), x.Module.ServiceTemplate)
	})

	if err != nil {
		return fmt.Errorf("modules: %w", err)
	}

	err = c.put(ctx, upsertServices, len(b.c.PutServices), func(i int, to []any) []any {
		x := &b.c.PutServices[i]
		h := &x.Service.Host
		return append(to, biz, x.Service.ID, x.Module, text(x.Service.Name), h.Cloud, ipText(h.IP), ipText(h.IPv6),
			text(string(h.Agent)), b.processes[i])
	})

	if err != nil {
		return fmt.Errorf("service instances: %w", err)
	}

	err = c.put(ctx, upsertNumbers, len(b.c.PutNumbers), func(i int, to []any) []any {
		x := &b.c.PutNumbers[i]
		return append(to, biz, x.Process, x.Module, text(x.Alias), x.HostNum, x.Per, x.Count)
	})

	if err != nil {
		return fmt.Errorf("instance numbers: %w", err)
	}

	return nil
}

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
		err := c.put(ctx, d.bulk, len(d.ids), func(i int, to []any) []any { return append(to, b.c.Biz, d.ids[i]) })
		if err != nil {
			return fmt.Errorf("%s that go: %w", d.what, err)
		}
	}
	return nil
}
