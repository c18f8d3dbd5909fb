package index_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

// TestIndexModel runs random changes, refreshes and queries on the index and on a naive one, and compares the answers.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{x: index.New(), m: naive{all: map[int]*naiveBusiness{}},
			fleet: map[fleetKey]topology.Status{}}
		t.Repeat(map[string]func(*rapid.T){
			"put":     w.put,
			"replace": w.replace,
			"remove":  w.remove,
			"refresh": w.refresh,
			"rebiz":   w.refreshBusiness,
			"find":    w.find,
			"tree":    w.tree,
		})
	})
}

// world is both indexes, and the fleet with the statuses.
type world struct {
	x     *index.Index
	m     naive
	fleet map[fleetKey]topology.Status
}

type fleetKey struct {
	host topology.Host
	key  gozzard.Key
}

func (w *world) look(h topology.Host, keys []gozzard.Key, out []topology.Status) {
	for i, k := range keys {
		if s, ok := w.fleet[fleetKey{h, k}]; ok {
			out[i] = s
		}
	}
}

func drawBiz(t *rapid.T) int { return rapid.IntRange(1, 3).Draw(t, "biz") }

func (w *world) put(t *rapid.T) {
	b, n := drawBusiness(t, drawBiz(t))
	w.x.Put(b, n)
	w.m.put(b, n)
	if got := w.x.Len(b.ID); got != len(w.m.all[b.ID].rows) {
		t.Fatalf("business %d has %d processes, not %d", b.ID, got, len(w.m.all[b.ID].rows))
	}
	for i := range b.Sets { // the index must have copied it
		b.Sets[i].Name = "changed"
	}
}

func (w *world) replace(t *rapid.T) {
	b, n := drawBusiness(t, drawBiz(t))
	w.x.Replace(b, n, w.look)
	w.m.put(b, n)
	w.m.refreshIf(b.ID, w.m.all[b.ID], w.look, func(topology.Host) bool { return true })
}

func (w *world) remove(t *rapid.T) {
	biz := drawBiz(t)
	w.x.Remove(biz)
	delete(w.m.all, biz)
}

// upset changes statuses on some hosts, and returns the agents or addresses of these.
func (w *world) upset(t *rapid.T) (agents []gozzard.AgentID, addrs []gozzard.HostAddr) {
	for biz, n := range w.m.all {
		for _, h := range n.hosts {
			if !rapid.Bool().Draw(t, "touched") {
				continue
			}
			for i := range n.rows {
				for _, inst := range n.rows[i].Instances {
					s := topology.Status{State: rapid.SampledFrom(states).Draw(t, "state"),
						Hosted: rapid.Bool().Draw(t, "hosted"), PID: 7, ReportedAt: 9}
					w.fleet[fleetKey{h, topology.Key(biz, n.rows[i].Name, inst.Local)}] = s
				}
			}
			if h.Agent != "" && rapid.Bool().Draw(t, "by agent") {
				agents = append(agents, h.Agent)
			} else {
				addrs = append(addrs, h.Addr(), gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6})
			}
		}
	}
	return agents, addrs
}

func (w *world) refresh(t *rapid.T) {
	agents, addrs := w.upset(t)
	w.x.Refresh(agents, addrs, w.look)
	w.m.refresh(agents, addrs, w.look)
}

func (w *world) refreshBusiness(t *rapid.T) {
	w.upset(t)
	biz := drawBiz(t)
	w.x.RefreshBusiness(biz, w.look)
	if n := w.m.all[biz]; n != nil {
		w.m.refreshIf(biz, n, w.look, func(topology.Host) bool { return true })
	}
}

func (w *world) find(t *rapid.T) {
	for range 10 {
		q := drawQuery(t)
		q.Visible = drawSight(t)
		total, rows := w.x.Find(q)
		wantTotal, want := w.m.find(q)
		if total != wantTotal {
			t.Errorf("%d match, not %d", total, wantTotal)
		}
		if diff := sameRows(want, rows); diff != "" {
			t.Errorf("wrong rows (- wanted, + found):\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("for %+v", q)
		}
	}
}

func (w *world) tree(t *rapid.T) {
	biz, env := drawBiz(t), topology.Env(rapid.IntRange(0, 4).Draw(t, "env"))
	if diff := gocmp.Diff(w.m.tree(biz, env), w.x.Tree(biz, env, nil)); diff != "" {
		t.Fatalf("wrong tree (- wanted, + found):\n%s", diff)
	}

	sees := drawSight(t)
	if sees == nil || env > topology.EnvFormal {
		return
	}

	want, _ := w.m.find(topology.Query{Biz: biz, Env: env, Visible: sees})
	for _, set := range w.x.Tree(biz, env, sees) {
		sum := 0
		for _, m := range set.Modules {
			sum += m.Processes
			if m.Services == 0 {
				t.Fatalf("module %d is shown with nothing in it", m.ID)
			}
		}
		if sum != set.Processes || len(set.Modules) == 0 {
			t.Fatalf("wrong counts: %+v", set)
		}
		want -= sum
	}

	if want != 0 {
		t.Fatalf("%d processes are missing in the tree", want)
	}
}

// drawSight returns a function that hides the hosts of a cloud, or nil.
func drawSight(t *rapid.T) func(h *topology.Host) bool {
	hidden := rapid.IntRange(-3, 2).Draw(t, "hidden cloud")
	if hidden < 0 {
		return nil
	}
	return func(h *topology.Host) bool { return h.Cloud != hidden }
}

// There are few values, so that most queries match something.
var (
	states       = []gozzard.RunState{gozzard.StateUnregistered, gozzard.StateRunning, gozzard.StateStopped}
	setNames     = []string{"管控平台", "PaaS平台", "a1", "b2"}
	moduleNames  = []string{"gse_agent", "gse_proxy", "db", "m-1"}
	serviceNames = []string{"10.0.0.1_gse_agent", "10.0.0.2_db", "s", "x.y"}
	aliases      = []string{"gse_agent", "gse_data", "mysqld", "p1", "p2", "p3"}
	cloudNames   = []string{"default area", "云区域", "10.0"}
	expressions  = []string{
		"*", "?", "gse*", "*_*", "[管控平台, PaaS平台]", "*平台", "[gse_agent,db]", "[1-30]", "[1-9,4*]", "4[!9]", "p[1-2]",
		"[]", "46", "[46,7,08]", "10.0.0.[1-2]_*", "[!p]*",
		"[3-99999]", "[20-2500]", "1[0-9999]", "0[1-5000]", "[1-4]0", "[0-99999999999999999999999]", "[[1-3]]*",
		"[200-1500,7*]", "?[0-2000]",
	}
)

func drawBusiness(t *rapid.T, biz int) (*topology.Business, []topology.Numbers) {
	b := &topology.Business{ID: biz, Name: fmt.Sprint("biz ", biz)}
	for id := range rapid.IntRange(0, 3).Draw(t, "clouds") {
		b.Clouds = append(b.Clouds, topology.Cloud{ID: id, Name: cloudNames[id]})
	}

	hosts := make([]topology.Host, 5)
	for h := range hosts {
		hosts[h] = topology.Host{Cloud: rapid.IntRange(0, 2).Draw(t, "cloud")}
		if v6 := netip.MustParseAddr(fmt.Sprintf("fd00::%d", h%3+1)); rapid.Bool().Draw(t, "v4") {
			hosts[h].IP = addrOf(h%3 + 1)
		} else {
			hosts[h].IPv6 = v6
		}
		if rapid.Bool().Draw(t, "agent") {
			hosts[h].Agent = gozzard.AgentID(fmt.Sprint("agent-", rapid.IntRange(1, 3).Draw(t, "agent id")))
		}
	}

	d := drawing{t: t, hosts: hosts, taken: map[naiveKey]bool{}, ids: map[string]int{}}
	for range rapid.IntRange(0, 3).Draw(t, "sets") {
		b.Sets = append(b.Sets, d.set())
	}

	for id := range rapid.IntRange(0, 3).Draw(t, "configs") {
		b.Templates = append(b.Templates, topology.ConfigTemplate{
			ID: 9 - id, Name: fmt.Sprint("c", id), FileName: "f", Templates: drawIDs(t, 3), Processes: drawIDs(t, 40),
		})
	}

	return b, d.numbers
}

// drawing is a business that is being drawn.
type drawing struct {
	t       *rapid.T
	hosts   []topology.Host
	taken   map[naiveKey]bool
	ids     map[string]int
	numbers []topology.Numbers
}

func (d *drawing) set() topology.Set {
	s := topology.Set{ID: d.fresh("set"), Name: rapid.SampledFrom(setNames).Draw(d.t, "set name"),
		Env: topology.Env(rapid.IntRange(1, 3).Draw(d.t, "env"))}
	for range rapid.IntRange(0, 3).Draw(d.t, "modules") {
		m := topology.Module{ID: d.fresh("module"), Name: rapid.SampledFrom(moduleNames).Draw(d.t, "module name"),
			ServiceTemplate: rapid.IntRange(0, 2).Draw(d.t, "st")}
		for range rapid.IntRange(0, 3).Draw(d.t, "services") {
			m.Instances = append(m.Instances, d.service(m.ID))
		}
		s.Modules = append(s.Modules, m)
	}
	return s
}

func (d *drawing) service(module int) topology.ServiceInstance {
	v := topology.ServiceInstance{ID: d.fresh("service"),
		Name: rapid.SampledFrom(serviceNames).Draw(d.t, "service name"),
		Host: rapid.SampledFrom(d.hosts).Draw(d.t, "host")}
	for range rapid.IntRange(0, 4).Draw(d.t, "processes") {
		alias := rapid.SampledFrom(aliases).Draw(d.t, "alias")
		if d.taken[naiveKey{v.Host, alias, 0}] { // an alias is unique on its host
			continue
		}
		d.taken[naiveKey{v.Host, alias, 0}] = true
		p := topology.Process{ID: d.fresh("process"), Name: alias,
			Template: rapid.IntRange(0, 3).Draw(d.t, "template"), Priority: rapid.IntRange(0, 2).Draw(d.t, "priority")}
		v.Processes = append(v.Processes, p)
		// A process without numbers has no instances.
		if count := rapid.IntRange(0, 3).Draw(d.t, "instances"); count > 0 {
			d.numbers = append(d.numbers, topology.Numbers{Process: p.ID, Module: module, Alias: alias,
				HostNum: rapid.IntRange(1, 4).Draw(d.t, "host number"), Per: 3, Count: count})
		}
	}

	return v
}

// fresh draws an id that its kind does not have yet.
func (d *drawing) fresh(kind string) int {
	for {
		id := rapid.IntRange(1, 60).Draw(d.t, kind)
		if name := fmt.Sprint(kind, id); d.ids[name] == 0 {
			d.ids[name] = id
			return id
		}
	}
}

func drawIDs(t *rapid.T, below int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, below), 1, 4).Draw(t, "ids")
}

// drawQuery draws a query with a few of all possible conditions.
func drawQuery(t *rapid.T) topology.Query {
	q := topology.Query{Biz: drawBiz(t), Start: rapid.IntRange(-1, 12).Draw(t, "start"),
		Limit: rapid.IntRange(-1, 12).Draw(t, "limit")}
	asks := map[string]func(){
		"env":           func() { q.Env = topology.Env(rapid.IntRange(1, 4).Draw(t, "env")) },
		"sets":          func() { q.Sets = drawIDs(t, 60) },
		"modules":       func() { q.Modules = drawIDs(t, 60) },
		"services":      func() { q.Services = drawIDs(t, 60) },
		"processes":     func() { q.Processes = drawIDs(t, 60) },
		"names":         func() { q.Names = drawSome(t, append(slices.Clone(aliases), "none")) },
		"clouds":        func() { q.Clouds = drawIDs(t, 3) },
		"ips":           func() { q.IPs = drawSome(t, []netip.Addr{addrOf(1), addrOf(2), addrOf(9)}) },
		"states":        func() { q.States = drawSome(t, append(slices.Clone(states), 9)) },
		"hosted":        func() { q.Hosted = drawSome(t, []bool{true, false}) },
		"searches":      func() { q.Searches = drawSome(t, []string{"10.0", "area", "0.2", "云", "nowhere"}) },
		"set names":     func() { q.SetNames = drawSome(t, setNames) },
		"module names":  func() { q.ModuleNames = drawSome(t, moduleNames) },
		"service names": func() { q.ServiceNames = drawSome(t, serviceNames) },
		"expression":    func() { q.Expression = drawExpression(t) },
	}

	for _, ask := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(asks))), 0, 5,
		rapid.ID).Draw(t, "asks") {
		asks[ask]()
	}

	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		by := topology.Field(rapid.IntRange(int(topology.ByProcess), int(topology.ByIP)).Draw(t, "by"))
		q.Order = append(q.Order, topology.Order{By: by, Descending: rapid.Bool().Draw(t, "descending")})
	}

	return q
}

func drawSome[T any](t *rapid.T, from []T) []T {
	return rapid.SliceOfN(rapid.SampledFrom(from), 1, 3).Draw(t, "some")
}

func drawExpression(t *rapid.T) *topology.Expression {
	part := func() *expression.Expression {
		if rapid.Bool().Draw(t, "any") {
			return nil
		}
		e, err := expression.Parse(rapid.SampledFrom(expressions).Draw(t, "expression"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}

	e := &topology.Expression{Set: part(), Module: part(), Service: part(), Name: part(), Process: part()}

	if rapid.Bool().Draw(t, "sliced") {
		end := rapid.OneOf(rapid.Just[*int](nil), rapid.Ptr(rapid.IntRange(-9, 9), false))
		e.Slice = &expression.Slice{From: end.Draw(t, "from"), To: end.Draw(t, "to")}
	}

	return e
}
