package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

const serviceColumns = `s.id, s.module_id, s.name, s.cloud, s.ip, s.ipv6, s.agent_id, s.processes, s.host_id,
	s.host_attributes`

var selectServices = withRows(`SELECT `+serviceColumns+
	` FROM v JOIN services s ON s.biz = v.b AND s.id = v.i ORDER BY s.id`, "b BIGINT", "i BIGINT")

// Businesses implements control.TopologyStore.
func (s *Store) Businesses(ctx context.Context) (list []record.BusinessHead, err error) {
	defer s.timed("businesses", &err)()
	err = s.read.each(ctx, `SELECT biz, name, version, source, at, left_out FROM businesses ORDER BY biz`, nil,
		func(r *sql.Rows) error {
			var h record.BusinessHead
			var left string
			if err := r.Scan(&h.ID, &h.Name, &h.Version, &h.Source, (*stamp)(&h.At), &left); err != nil {
				return err
			}
			if h.Left, err = fromList(left, func(s string) string { return s }); err != nil {
				return err
			}
			list = append(list, h)
			return nil
		})
	return list, s.readError("businesses", err)
}

// Business implements control.TopologyStore.
func (s *Store) Business(ctx context.Context, biz int) (rec record.Business, err error) {
	defer s.timed("business", &err)()
	err = s.read.snapshot(ctx, func(tx *sql.Tx) (err error) {
		rec, err = readBusiness(ctx, tx, biz)
		return err
	})
	if err != nil {
		return record.Business{}, s.readError(fmt.Sprintf("business %d", biz), err)
	}
	return rec, nil
}

func readBusiness(ctx context.Context, tx *sql.Tx, biz int) (rec record.Business, err error) {
	// Read the business itself.
	found := false
	var clouds, templates, left string
	rows, err := tx.QueryContext(ctx,
		`SELECT biz, name, version, source, at, clouds, templates, left_out FROM businesses WHERE biz = $1`, biz)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		found = true
		return r.Scan(&rec.ID, &rec.Name, &rec.Version, &rec.Source, (*stamp)(&rec.At), &clouds, &templates, &left)
	})
	if err != nil {
		return rec, err
	}
	if !found {
		return rec, gozzard.Errorf(gozzard.ErrNotFound, "there is no business %d", biz)
	}

	// Read what is in it.
	b := &rec.Business
	b.ID, b.Name = rec.ID, rec.Name
	if b.Clouds, err = fromList(clouds, fromCloud); err != nil {
		return rec, fmt.Errorf("cloud areas: %w", err)
	}
	if b.Templates, err = fromList(templates, fromTemplate); err != nil {
		return rec, fmt.Errorf("configuration templates: %w", err)
	}
	if b.Left, err = fromList(left, func(s string) string { return s }); err != nil {
		return rec, fmt.Errorf("what was left out: %w", err)
	}
	rec.Left = b.Left
	if err := readTree(ctx, tx, b); err != nil {
		return rec, err
	}

	b.Sort() // an older version may have stored the lists in another order
	rec.Numbers, err = readNumbers(ctx, tx, biz)
	return rec, err
}

// readTree reads the sets, modules and service instances of a business. It reads from the bottom up, each kind with one
// query, so that every value is appended once and not moved afterwards.
func readTree(ctx context.Context, tx *sql.Tx, b *topology.Business) error {
	services := map[int][]topology.ServiceInstance{} // by module
	rows, err := tx.QueryContext(ctx, `SELECT `+serviceColumns+` FROM services s WHERE s.biz = $1 ORDER BY s.id`, b.ID)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		module, x, err := scanService(r)
		services[module] = append(services[module], x)
		return err
	})
	if err != nil {
		return fmt.Errorf("service instances: %w", err)
	}

	modules := map[int][]topology.Module{} // by set
	rows, err = tx.QueryContext(ctx,
		`SELECT id, set_id, name, service_template, attributes FROM modules WHERE biz = $1 ORDER BY id`, b.ID)
	err = scanAll(rows, err, func(r *sql.Rows) error {
		var set int
		var m topology.Module
		if err := r.Scan(&m.ID, &set, &m.Name, &m.ServiceTemplate, &m.Attributes); err != nil {
			return err
		}
		m.Instances = services[m.ID]
		modules[set] = append(modules[set], m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("modules: %w", err)
	}

	rows, err = tx.QueryContext(ctx, `SELECT id, name, env, attributes FROM sets WHERE biz = $1 ORDER BY id`, b.ID)
	return scanAll(rows, err, func(r *sql.Rows) error {
		var x topology.Set
		if err := r.Scan(&x.ID, &x.Name, &x.Env, &x.Attributes); err != nil {
			return err
		}
		x.Modules = modules[x.ID]
		b.Sets = append(b.Sets, x)
		return nil
	})
}

func scanService(r *sql.Rows) (module int, x topology.ServiceInstance, err error) {
	var ip, ipv6, agent, processes string
	if err := r.Scan(&x.ID, &module, &x.Name, &x.Host.Cloud, &ip, &ipv6, &agent, &processes,
		&x.Host.ID, &x.HostAttributes); err != nil {
		return 0, x, err
	}

	x.Host.Agent = gozzard.AgentID(agent)
	if x.Host.IP, err = fromIP(ip); err != nil {
		return 0, x, err
	}
	if x.Host.IPv6, err = fromIP(ipv6); err != nil {
		return 0, x, err
	}
	if x.Processes, err = fromList(processes, fromProcess); err != nil {
		return 0, x, fmt.Errorf("processes of service instance %d: %w", x.ID, err)
	}

	return module, x, nil
}

func fromIP(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	return netip.ParseAddr(s)
}

func readNumbers(ctx context.Context, tx *sql.Tx, biz int) (list []topology.Numbers, err error) {
	rows, err := tx.QueryContext(ctx,
		`SELECT process, module_id, alias, host_num, per, instances FROM numbers WHERE biz = $1 ORDER BY process`, biz)
	return list, scanAll(rows, err, func(r *sql.Rows) error {
		var n topology.Numbers
		if err := r.Scan(&n.Process, &n.Module, &n.Alias, &n.HostNum, &n.Per, &n.Count); err != nil {
			return fmt.Errorf("instance numbers: %w", err)
		}
		list = append(list, n)
		return nil
	})
}

// Services implements control.TopologyStore.
func (s *Store) Services(ctx context.Context, biz int, ids []int) (list []topology.ServiceInstance, err error) {
	defer s.timed("services", &err)()

	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)

	err = s.read.queryRows(ctx, selectServices, len(ids),
		func(i int, to []any) []any { return append(to, biz, ids[i]) },
		func(r *sql.Rows) error {
			_, x, err := scanService(r)
			list = append(list, x)
			return err
		})
	if err != nil {
		return nil, s.readError("service instances", err)
	}

	return list, nil
}
