//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"time"

	"github.com/gozzard/gozzard/internal/expression"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/sheet"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

// question is a query to both sides.
type question struct {
	what, goal string
	query      topology.Query
	where      string // the same for PostgreSQL
	args       []any
	random     bool // at a random position instead of the beginning
}

func (b *bench) measureFind(ctx context.Context) (err error) {
	pg, err := startPostgres(ctx, b.dir, b.size.buffers)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, pg.stop(ctx)) }()
	var version string
	if err := pg.conn.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return err
	}

	b.res.postgres = "PostgreSQL " + version
	for _, n := range b.size.processes {
		if err := b.compare(ctx, pg, n); err != nil {
			return fmt.Errorf("%d processes: %w", n, err)
		}
	}

	b.res.Note("Ours is what process_status asks of the server before it writes JSON: what was reported until then is added, the page and the exact count are "+
		"found, and every row gets the newest status, pid and report time of its instances from the live index, which holds as many processes. PostgreSQL is asked "+
		"over its Unix socket for the count and the page in one round trip, then for the instances of the page; its text is in the order of bytes, it has %s of "+
		"buffers, an index for every filter that narrows, its tables were vacuumed, and until hosts change no client writes to it.", b.size.buffers)
	b.res.Note("One business has all the processes: 20 on a host in four service instances, 40 aliases; a thirtieth is stopped.")
	return nil
}

// compare sends queries about a business of n processes to both sides.
func (b *bench) compare(ctx context.Context, pg *postgres, n int) error {
	b.say("making a business of %d processes", n)
	business := makeBusiness(n)
	numbers, err := topology.Number(nil, business)
	if err != nil {
		return err
	}

	b.say("copying it into PostgreSQL")

	if err := pg.fill(ctx, business, numbers); err != nil {
		return err
	}

	b.say("putting it into the index")
	perProcess, built := memoryOf(business, numbers)
	hosts := byHost(business)
	s, err := b.serve(ctx, fmt.Sprint("find-", n), business, numbers, hosts)
	if err != nil {
		return err
	}

	t := b.res.Table(fmt.Sprintf("process_status over %d processes", len(numbers)), "from memory, p50 / p90",
		"PostgreSQL, p50 / p90")
	for _, q := range questions() {
		b.say("%s", q.what)
		if err := b.ask(ctx, pg, s, t, q); err != nil {
			return fmt.Errorf("%s: %w", q.what, errors.Join(err, s.store.Close()))
		}
	}

	if err := b.reports(ctx, pg, s, t, hosts); err != nil {
		return errors.Join(err, s.store.Close())
	}

	size, err := pg.bytes(ctx)
	if err != nil {
		return errors.Join(err, s.store.Close())
	}

	t.Add("bytes a process; PostgreSQL: tables and indexes", fmt.Sprintf("%.0f", perProcess),
		fmt.Sprintf("%.0f", float64(size)/float64(len(numbers))), "", "75 to 150")
	t.Add("put into the index", span(built), "", "", "")
	return s.store.Close()
}

// serve starts a server that has the business and whose hosts have reported.
func (b *bench) serve(ctx context.Context, name string, business *topology.Business, numbers []topology.Numbers,
	hosts [][]place) (*server, error) {
	dir, err := makeDir(b.dir, name)
	if err != nil {
		return nil, err
	}

	s := &server{live: fleet.New()}
	for _, list := range hosts {
		s.join(list[0].service.Host)
		s.report(list, 1, nil)
	}

	head := record.BusinessHead{ID: business.ID, Name: business.Name, Version: 1, Source: record.SourceFile,
		At: time.Now()}
	return startServer(ctx, dir, s.live, &memory{record.Business{BusinessHead: head, Business: *business,
		Numbers: numbers}})
}

// byHost lists the processes of each host.
func byHost(b *topology.Business) [][]place {
	places := map[gozzard.AgentID]int{}
	var hosts [][]place
	for _, l := range placesOf(b) {
		at, ok := places[l.service.Host.Agent]
		if !ok {
			at = len(hosts)
			places[l.service.Host.Agent], hosts = at, append(hosts, make([]place, 0, perHost))
		}
		hosts[at] = append(hosts[at], l)
	}
	return hosts
}

// memoryOf measures the memory of an index of the business, and how long it takes to build.
func memoryOf(b *topology.Business, n []topology.Numbers) (bytesEach float64, took time.Duration) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}

	x, before := index.New(), heap()
	began := time.Now()
	x.Put(b, n)
	took = time.Since(began)
	bytesEach = float64(heap()-before) / float64(len(n))
	runtime.KeepAlive(x)
	return bytesEach, took
}

// questions are the queries that people and their programs send.
func questions() []question {
	formal := topology.Query{Biz: biz, Env: topology.EnvFormal, Limit: 1000}
	everything := topology.Query{Biz: biz, Limit: 1000}
	stopped, hundred := formal, formal
	hundred.Limit = 100
	five, broad, filters := hundred, hundred, hundred
	stopped.States = []gozzard.RunState{gozzard.StateStopped}
	five.Expression = compile("管控平台-0[00, 04, 08, 12, 16, 20]", "gse_*", "10.*", "[gse_agent_agent, gse_data_agent]",
		"*")
	broad.Expression = compile("*平台-*", "gse_*", "10.*_gse_*", "*_agent", "*")
	filters.Sets, filters.Names = []int{1, 2, 3, 5, 9},
		[]string{"gse_agent_agent", "gse_agent_worker", "gse_data_agent"}
	filters.Clouds, filters.States, filters.Hosted = []int{0},
		[]gozzard.RunState{gozzard.StateRunning, gozzard.StateStopped}, []bool{true}
	const goal = "≥ 20×"
	return []question{
		{what: "first 1,000 rows of the formal environment", goal: goal, query: formal,
			where: "biz = $1 AND env = $2", args: []any{biz, 3}},
		{what: "1,000 rows at a random place", goal: goal, query: everything, where: "biz = $1", args: []any{biz},
			random: true},
		{
			what: "first 1,000 stopped processes of the formal environment", query: stopped,
			where: "biz = $1 AND env = $2 AND state = $3", args: []any{biz, 3, int(gozzard.StateStopped)},
		},
		{
			what: "100 rows of an expression of five fields, few sets: " + words(five.Expression), goal: goal,
			query: five,
			where: "biz = $1 AND env = $2 AND set_name = ANY($3) AND module_name LIKE $4 AND service_name LIKE $5 AND alias = ANY($6)",
			args: []any{biz, 3, setsNamed(0, 4, 8, 12, 16, 20), `gse\_%`, "10.%",
				[]string{"gse_agent_agent", "gse_data_agent"}},
		},
		{
			what: "100 rows of an expression of five fields, all sets: " + words(broad.Expression), goal: goal,
			query: broad,
			where: "biz = $1 AND env = $2 AND set_name LIKE $3 AND module_name LIKE $4 AND service_name LIKE $5 AND alias LIKE $6",
			args:  []any{biz, 3, "%平台-%", `gse\_%`, `10.%\_gse\_%`, `%\_agent`},
		},
		{
			what: "100 rows of five filters: 5 sets, 3 aliases, cloud, 2 states, hosted", query: filters,
			where: "biz = $1 AND env = $2 AND set_id = ANY($3) AND alias = ANY($4) AND cloud = $5 AND state = ANY($6) AND hosted",
			args:  []any{biz, 3, filters.Sets, filters.Names, 0, []int{1, 2}},
		},
	}
}

// compile compiles an expression that is known to be valid.
func compile(parts ...string) *topology.Expression {
	compiled := make([]*expression.Expression, len(parts))
	for i, p := range parts {
		var err error
		if compiled[i], err = expression.Parse(p); err != nil {
			panic(err)
		}
	}
	return &topology.Expression{Set: compiled[0], Module: compiled[1], Service: compiled[2], Name: compiled[3],
		Process: compiled[4]}
}

func words(e *topology.Expression) string {
	return fmt.Sprintf("`%s` `%s` `%s` `%s` `%s`", e.Set, e.Module, e.Service, e.Name, e.Process)
}

func setsNamed(numbers ...int) (names []string) {
	for _, n := range numbers {
		names = append(names, setName(n))
	}
	return names
}

// ask queries both sides alternately and checks that their answers are equal.
func (b *bench) ask(ctx context.Context, pg *postgres, s *server, t *sheet.Table, q question) error {
	var ours, theirs samples
	total := 0
	for round := range b.size.rounds + 1 {
		if q.random && total > 0 {
			q.query.Start = rand.IntN(max(total-q.query.Limit, 1))
		}
		began := time.Now()
		n, rows := s.plane.FindProcesses(admin, q.query)
		took := time.Since(began)
		began = time.Now()
		want, peer, err := pg.find(ctx, q.where, q.args, q.query.Start, q.query.Limit)
		if err != nil {
			return err
		}
		if round > 0 { // the first round fills caches on both sides
			ours, theirs = append(ours, took), append(theirs, time.Since(began))
		}
		if why := differ(n, rows, want, peer); why != "" {
			b.res.AddFault("%s: %s", q.what, why)
			break
		}
		total = n
	}

	t.Add(fmt.Sprintf("%s; %d fit", q.what, total), ours.quantiles(), theirs.quantiles(),
		ratio(theirs.at(0.5), ours.at(0.5))+" as fast", q.goal)
	return nil
}

// differ describes how two answers differ, "" if they do not.
func differ(total int, rows []topology.Row, want int, peer []*row) string {
	if total != want || len(rows) != len(peer) {
		return fmt.Sprintf("%d fit and %d are shown, PostgreSQL has %d and %d", total, len(rows), want, len(peer))
	}
	if total == 0 {
		return "nothing fits: nothing was measured"
	}

	for i := range rows {
		r, p := &rows[i], peer[i]
		if len(r.Instances) != 1 || len(p.Instances) != 1 {
			return fmt.Sprintf("process %d has %d instances, %d in PostgreSQL", r.Process, len(r.Instances),
				len(p.Instances))
		}
		mine := row{
			Biz: r.Biz, ID: r.Process, Env: int(r.Env), Set: r.Set, SetName: r.SetName, Module: r.Module,
			ModuleName:      r.ModuleName,
			ServiceTemplate: r.ServiceTemplate, Service: r.Service, ServiceName: r.ServiceName, Cloud: r.Host.Cloud,
			CloudName: r.CloudName,
			IP:        r.Host.IP.String(), Agent: string(r.Host.Agent), Alias: r.Name, Template: r.Template,
			Priority: r.Priority, RunState: int(r.State), Hosted: r.Hosted,
		}
		in := instance{r.Instances[0].Local, r.Instances[0].Inst, int(r.Instances[0].Status.State),
			r.Instances[0].Status.Hosted}
		theirs, theirInstance := *p, p.Instances[0]
		theirs.Instances = nil
		if !reflect.DeepEqual(mine, theirs) || in != theirInstance {
			return fmt.Sprintf("row %d is %+v %+v, in PostgreSQL %+v %+v", i, mine, in, theirs, theirInstance)
		}
	}

	return ""
}

// reports changes all processes of a host and then queries them.
func (b *bench) reports(ctx context.Context, pg *postgres, s *server, t *sheet.Table, hosts [][]place) error {
	b.say("reports of hosts")
	var ours, theirs samples
	for i := range b.size.rounds {
		list := hosts[i*7919%len(hosts)]
		host := list[0].service.Host
		ids := make([]int, len(list))
		for j, l := range list {
			ids[j] = l.process.ID
		}
		state := gozzard.StateStopped
		q := topology.Query{Biz: biz, IPs: []netip.Addr{host.IP}, States: []gozzard.RunState{state}, Limit: 100}
		began := time.Now()
		s.report(list, uint64(2+i), &state)
		n, _ := s.plane.FindProcesses(admin, q)
		ours = append(ours, time.Since(began))
		began = time.Now()
		if err := pg.report(ctx, host.IP.String(), ids, int(state)); err != nil {
			return err
		}
		want, _, err := pg.find(ctx, "biz = $1 AND ip = $2 AND state = $3", []any{biz, host.IP.String(), int(state)},
			0, 100)
		if err != nil {
			return err
		}
		theirs = append(theirs, time.Since(began))
		if n != want || n != len(list) {
			b.res.AddFault("after a report %d of %d processes are stopped, %d in PostgreSQL", n, len(list), want)
			break
		}
	}

	t.Add(fmt.Sprintf("all %d processes of a host change, and are asked for by address and state", perHost),
		ours.quantiles(), theirs.quantiles(),
		ratio(theirs.at(0.5), ours.at(0.5))+" as fast", "")
	return nil
}
