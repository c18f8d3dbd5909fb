//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/sim"
)

const (
	pageRows = 100
	sets     = 10 // of the business
	modules  = 4  // of each set
)

// list is one question to every server, and to bare PostgreSQL.
type list struct {
	what    string
	path    string // of the API
	where   string // the same for PostgreSQL
	order   string
	offset  int
	rows    int             // that it finds
	servers []time.Duration // medians
	bare    time.Duration
}

// look asks all servers and PostgreSQL, in turn.
func (b *bench) look(ctx context.Context, l *list) error {
	ours := make([][]time.Duration, servers)
	var bare []time.Duration
	for range b.looks {
		for i, s := range b.servers {
			began := time.Now()
			n, err := s.Count(ctx, l.path)
			if err != nil {
				return err
			}
			ours[i] = append(ours[i], time.Since(began))
			if n != l.rows {
				return fmt.Errorf("%s: server %d finds %d rows, and there are %d", l.what, s.n, n, l.rows)
			}
		}

		began := time.Now()
		n, err := b.pg.page(ctx, l)
		if err != nil {
			return err
		}
		bare = append(bare, time.Since(began))
		if n != l.rows {
			return fmt.Errorf("%s: PostgreSQL finds %d rows, and there are %d", l.what, n, l.rows)
		}
	}

	for i := range ours {
		l.servers = append(l.servers, middle(ours[i]))
	}
	l.bare = middle(bare)
	b.say("%s: %v, bare PostgreSQL %s", l.what, l.servers, l.bare)
	return nil
}

// page reads a page and the number of all rows, as our answer has both.
func (p *postgres) page(ctx context.Context, l *list) (count int, err error) {
	if err := p.conn.QueryRow(ctx, "SELECT count(*) FROM bare_processes WHERE "+l.where).Scan(&count); err != nil {
		return 0, err
	}
	rows, err := p.conn.Query(ctx, fmt.Sprintf("SELECT * FROM bare_processes WHERE %s ORDER BY %s LIMIT %d OFFSET %d", l.where, l.order, pageRows, l.offset))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if _, err := rows.Values(); err != nil {
			return 0, err
		}
	}
	return count, rows.Err()
}

// tabulate makes a table with all processes, with indexes for these questions.
func (p *postgres) tabulate(ctx context.Context, agents, processes int) error {
	return p.exec(ctx, `CREATE TABLE bare_processes AS SELECT p * 1000000 + h AS id, 'sim-' || lpad(h::text, 5, '0') AS agent, 0 AS cloud, '127.1.' || 1 + h / 250 || '.' || 1 + h % 250 AS ip,
		'process-' || lpad(p::text, 2, '0') AS name, 'set-' || h % `+fmt.Sprint(sets)+` AS set_name, 'module-' || h / `+fmt.Sprint(sets)+` % `+fmt.Sprint(modules)+` AS module_name, 'running' AS state, 1000 + p AS pid, now() AS started
		FROM generate_series(0, `+fmt.Sprint(agents-1)+`) h, generate_series(0, `+fmt.Sprint(processes-1)+`) p`,
		"CREATE UNIQUE INDEX ON bare_processes (agent, name)", "CREATE INDEX ON bare_processes (name, agent)",
		"CREATE INDEX ON bare_processes (set_name, name, id)", "VACUUM ANALYZE bare_processes")
}

// measureLists asks every server for pages of all processes.
func (b *bench) measureLists(ctx context.Context) error {
	if err := b.pg.tabulate(ctx, b.listed, b.processes); err != nil {
		return err
	}
	all := b.listed * b.processes
	path := fmt.Sprintf("/api/v1/processes?namespace=%s&limit=%d", b.namespace(), pageRows)
	b.m.lists = []list{
		{what: "the first page", path: path, where: "true", order: "agent, name", rows: all},
		{what: "a page in the middle", path: fmt.Sprint(path, "&start=", all/2), where: "true", order: "agent, name", offset: all / 2, rows: all},
		{what: "one process on all hosts", path: path + "&name=" + procName(0) + "_1", where: "name = '" + procName(0) + "'", order: "name, agent", rows: b.listed},
		{what: "one host", path: path + "&host=" + string(sim.AgentID(1)), where: "agent = '" + string(sim.AgentID(1)) + "'", order: "agent, name", rows: b.processes},
	}
	for i := range b.m.lists {
		if err := b.look(ctx, &b.m.lists[i]); err != nil {
			return err
		}
	}
	return nil
}

// measureExpression records a business with all processes, as a server that reads a CMDB does, and asks every server by
// expressions.
func (b *bench) measureExpression(ctx context.Context) error {
	began := time.Now()
	if err := b.recordBusiness(ctx); err != nil {
		return err
	}
	path := fmt.Sprintf("/api/v1/processes?biz=%d&limit=%d", business, pageRows)
	all := b.listed * b.processes
	for _, s := range b.servers {
		err := child.Until(ctx, 10*time.Minute, "the business", func() (bool, error) {
			n, err := s.Count(ctx, path)
			if err == nil && n != all {
				time.Sleep(500 * time.Millisecond) // each look costs the server something
				err = fmt.Errorf("server %d knows %d of %d processes", s.n, n, all)
			}
			return err == nil, err
		}, b.serverParts()...)
		if err != nil {
			return err
		}
	}
	b.m.applied = time.Since(began)
	b.say("every server has the business after %s", b.m.applied.Round(time.Second))

	inSet := (b.listed - 1 - 3) / sets
	if b.listed > 3 {
		inSet++ // hosts 3, 13, 23 and so on
	}
	ask := func(expression string) string { return path + "&expression=" + url.QueryEscape(expression) }
	b.m.expression = []list{
		{what: "`*.*.*.*.*`", path: ask("*.*.*.*.*"), where: "true", order: "id", rows: all},
		{what: "`set-3.*.*.process-00.*`", path: ask("set-3.*.*.process-00.*"), where: "set_name = 'set-3' AND name = 'process-00'", order: "id", rows: inSet},
	}
	for i := range b.m.expression {
		if err := b.look(ctx, &b.m.expression[i]); err != nil {
			return err
		}
	}
	return nil
}

// recordBusiness records a business with a service instance on every host.
func (b *bench) recordBusiness(ctx context.Context) (err error) {
	doc := &topology.Business{ID: business, Name: "bench", Clouds: []topology.Cloud{{ID: 0, Name: "default area"}}}
	for s := range sets {
		set := topology.Set{ID: 1 + s, Name: fmt.Sprint("set-", s), Env: topology.EnvFormal}
		for m := range modules {
			set.Modules = append(set.Modules, topology.Module{ID: 1000 + s*modules + m, Name: fmt.Sprint("module-", m)})
		}
		doc.Sets = append(doc.Sets, set)
	}
	for h := range b.listed {
		service := topology.ServiceInstance{ID: 1 + h, Name: string(sim.AgentID(h)), Host: topology.Host{IP: sim.Addr(0, h).IP, Agent: sim.AgentID(h)}}
		for p := range b.processes {
			service.Processes = append(service.Processes, topology.Process{ID: 1 + h*b.processes + p, Name: procName(p), Num: 1, User: "root",
				WorkPath: "/data/bench", PIDFile: "/data/bench/" + procName(p) + ".pid", Start: "./start.sh", Stop: "./stop.sh", Reload: "./reload.sh"})
		}
		module := &doc.Sets[h%sets].Modules[h/sets%modules]
		module.Instances = append(module.Instances, service)
	}
	doc.Sort()
	numbers, err := topology.Number(nil, doc)
	if err != nil {
		return err
	}
	change, _ := topology.Compare(nil, nil, doc, numbers)

	store, err := sqlstore.OpenPostgres(ctx, b.pg.URL(database), sqlstore.Options{Log: slog.New(slog.DiscardHandler), Fatal: func(error) {}, Server: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = store.SaveBusiness(ctx, change, record.SourceFile, gozzard.AuditRow{At: time.Now(), Caller: gozzard.Caller{App: "bench"}, Act: "topology:apply:2"})
	return err
}
