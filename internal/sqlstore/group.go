package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

var (
	upsertGroups = insertRows("process_groups",
		"agent_id, namespace, grp, cloud, ip, cpu_limit, mem_limit, cpu_weight, mem_weight, labels, supplier_id",
		` ON CONFLICT (agent_id, namespace, grp) DO UPDATE
			SET cloud = excluded.cloud, ip = excluded.ip, cpu_limit = excluded.cpu_limit,
			mem_limit = excluded.mem_limit, cpu_weight = excluded.cpu_weight, mem_weight = excluded.mem_weight,
			labels = excluded.labels,
			supplier_id = excluded.supplier_id`)

	selectGroups = withRows(`SELECT g.agent_id, g.namespace, g.grp, g.cloud, g.ip, g.cpu_limit, g.mem_limit,
		g.cpu_weight, g.mem_weight, g.labels, g.supplier_id
		FROM v JOIN process_groups g ON g.agent_id = v.a AND (v.ns = '' OR g.namespace = v.ns)
		ORDER BY g.agent_id, g.grp`, "a TEXT", "ns TEXT")
)

// SetGroups implements control.Store.
func (s *Store) SetGroups(ctx context.Context, rows []record.GroupLimits, audit gozzard.AuditRow) (err error) {
	defer s.timed("set_groups", &err)()
	audit = withOrigin(ctx, audit)

	type key struct {
		agent     gozzard.AgentID
		namespace string
		group     string
	}

	// One statement must not name a group twice: the last row of each group counts.
	last := map[key]int{}
	for i := range rows {
		last[key{rows[i].Agent, rows[i].Namespace, rows[i].Group}] = i
	}

	var put []record.GroupLimits
	var labels []string
	for i := range rows {
		if last[key{rows[i].Agent, rows[i].Namespace, rows[i].Group}] != i {
			continue
		}
		l, err := labelsText(rows[i].Labels)
		if err != nil {
			return fmt.Errorf("cannot encode the labels of group %s: %w", rows[i].Group, err)
		}
		put, labels = append(put, rows[i]), append(labels, l)
	}

	return s.w.submit(ctx, &job{op: "process groups", rows: len(put), grows: true,
		run: func(ctx context.Context, c *conn) error {
			if err := addAudit(ctx, c, audit); err != nil {
				return err
			}
			if err := c.bump(ctx, record.KindGroups); err != nil {
				return err
			}

			return c.execRows(ctx, upsertGroups, len(put), func(i int, to []any) []any {
				g := &put[i]
				return append(to, text(string(g.Agent)), text(g.Namespace), text(g.Group),
					g.Addr.Cloud, ipText(g.Addr.IP),
					g.CPULimit, g.MemLimit, g.CPUWeight, g.MemWeight, labels[i], g.SupplierID)
			})
		}})
}

// Groups implements control.Store. The list is ordered by agent and group name.
func (s *Store) Groups(ctx context.Context, namespace string,
	agents []gozzard.AgentID) (list []record.GroupLimits, err error) {
	defer s.timed("groups", &err)()

	agents = slices.Clone(agents)
	slices.Sort(agents)
	agents = slices.Compact(agents)

	err = s.read.queryRows(ctx, selectGroups, len(agents), func(i int, to []any) []any {
		return append(to, text(string(agents[i])), text(namespace))
	}, func(r *sql.Rows) error {
		var g record.GroupLimits
		var cloud int64
		var ip, labels string
		err := r.Scan(&g.Agent, &g.Namespace, &g.Group, &cloud, &ip, &g.CPULimit, &g.MemLimit, &g.CPUWeight,
			&g.MemWeight, &labels, &g.SupplierID)
		if err != nil {
			return err
		}
		if g.Addr, err = hostAddr(cloud, ip); err != nil {
			return err
		}
		if g.Labels, err = fromLabels(labels); err != nil {
			return err
		}

		list = append(list, g)
		return nil
	})

	return list, s.readError("process groups", err)
}
