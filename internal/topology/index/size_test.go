package index_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

var indexRows = flag.Int("index.rows", 200_000, "processes of the business that BenchmarkIndex measures")

const perHost = 20

// bigBusiness makes a business of that many processes, 20 on each host in four service instances. The order of process
// ids is random, as in a business that has changed for years. The seed is fixed, so two businesses of different sizes
// agree in what both have.
func bigBusiness(biz, processes int) (*topology.Business, []topology.Numbers) {
	const perService, perSet = 5, 8
	perModule := max(10, processes/20_000)
	b := &topology.Business{ID: biz, Clouds: []topology.Cloud{{ID: 0, Name: "default area"}, {ID: 1, Name: "云区域"}}}
	ids := rand.New(rand.NewPCG(1, 2)).Perm(processes)
	numbers := make([]topology.Numbers, 0, processes)
	for i := 0; i < processes; {
		service := i / perService
		module := service / perModule
		if module%perSet == 0 && service%perModule == 0 {
			set := len(b.Sets)
			b.Sets = append(b.Sets, topology.Set{ID: set + 1, Name: fmt.Sprintf("%s-%d", setNames[set%4], set),
				Env: topology.Env(3 - set%8/6)})
		}
		set := &b.Sets[len(b.Sets)-1]
		if service%perModule == 0 {
			set.Modules = append(set.Modules, topology.Module{ID: 5000 + module*7%4999, Name: moduleNames[module%4],
				ServiceTemplate: module % 30})
		}
		m := &set.Modules[len(set.Modules)-1]
		host := i / perHost
		h := topology.Host{Cloud: host % 3, IP: addrOf(host), Agent: gozzard.AgentID(fmt.Sprintf("020000%032x", host))}
		if host%10 == 0 {
			h.Agent, h.IPv6 = "", netip.AddrFrom16([16]byte{0xfd, 14: byte(host >> 8), 15: byte(host)})
		}
		v := topology.ServiceInstance{ID: 10 + service, Name: fmt.Sprintf("%s_%s", h.IP, m.Name), Host: h}
		for j := 0; j < perService && i < processes; i++ {
			p := topology.Process{ID: 1 + ids[i], Name: fmt.Sprintf("%s-%02d", aliases[i%6], i%perHost),
				Template: module%30*10 + j, Priority: j}
			v.Processes = append(v.Processes, p)
			numbers = append(numbers, topology.Numbers{Process: p.ID, Module: m.ID, Alias: p.Name,
				HostNum: service%perModule + 1, Per: 1 + j%2, Count: 1 + j%2})
			j++
		}
		m.Instances = append(m.Instances, v)
	}

	slices.SortFunc(numbers, func(a, b topology.Numbers) int { return a.Process - b.Process })
	return b, numbers
}

// settled is the Look of a fleet in which a tenth of the processes is stopped, a few are unknown and half is
// supervised.
func settled(h topology.Host, keys []gozzard.Key, out []topology.Status) {
	b := h.IP.As4()
	n := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	for i, k := range keys {
		n := n*31 + len(k.Name)*7 + int(k.Name[len(k.Name)-3])*3 + int(k.Name[len(k.Name)-1])
		switch n % 20 {
		case 0, 1:
			out[i].State = gozzard.StateStopped
		case 2:
		default:
			out[i].State = gozzard.StateRunning
		}
		out[i].Hosted = n/20%2 == 0
	}
}

// TestIndexLarge runs the queries of TestIndexModel on a business that is large enough for all algorithms.
func TestIndexLarge(t *testing.T) {
	x, m := index.New(), naive{all: map[int]*naiveBusiness{}}
	b, n := bigBusiness(1, 3001)
	x.Put(b, n)
	m.put(b, n)
	var agents []gozzard.AgentID
	var addrs []gozzard.HostAddr
	for h := range 20 {
		host := m.all[1].hosts[h]
		agents, addrs = append(agents, host.Agent), append(addrs, m.all[1].hosts[30+h].Addr(),
			gozzard.HostAddr{Cloud: host.Cloud, IP: host.IPv6})
	}

	x.Refresh(agents, addrs, settled)
	m.refresh(agents, addrs, settled)

	rapid.Check(t, func(t *rapid.T) {
		q := drawQuery(t)
		q.Biz, q.Start = 1, rapid.SampledFrom([]int{0, 3, 700, 2995}).Draw(t, "start")
		q.Processes = nil
		for i := range q.Modules {
			q.Modules[i] = b.Sets[q.Modules[i]%3].Modules[q.Modules[i]%8].ID
		}
		total, rows := x.Find(q)
		wantTotal, want := m.find(q)
		if diff := sameRows(want, rows); diff != "" || total != wantTotal {
			t.Fatalf("%d match, not %d, for %+v; rows (- wanted, + found):\n%s", total, wantTotal, q, diff)
		}
	})
}

// TestIndexAtOnce runs Put, Replace, Refresh and queries concurrently. What a refresh wrote stays until the fleet
// changes, even when the business is replaced meanwhile, and no answer contradicts itself.
func TestIndexAtOnce(t *testing.T) {
	const processes, hosts = 600, 600 / perHost
	x := index.New()
	small, smallN := bigBusiness(1, processes)
	large, largeN := bigBusiness(1, processes+200)
	x.Put(small, smallN)
	var truth [hosts + 10]atomic.Uint32
	look := func(h topology.Host, keys []gozzard.Key, out []topology.Status) {
		state := gozzard.RunState(truth[int(h.IP.As4()[3])].Load() % 3)
		runtime.Gosched() // an answer may be old when it arrives
		for i := range out {
			out[i] = topology.Status{State: state, Hosted: state == gozzard.StateRunning}
		}
	}

	check := func(h int) {
		_, rows := x.Find(topology.Query{Biz: 1, IPs: []netip.Addr{addrOf(h)}, Limit: -1})
		for _, r := range rows {
			if want := gozzard.RunState(truth[h].Load() % 3); r.State != want {
				t.Errorf("process %d on host %d is %s, the fleet says %s", r.Process, h, r.State, want)
			}
		}
		if len(rows) != perHost {
			t.Errorf("host %d has %d processes, not %d", h, len(rows), perHost)
		}
	}

	var changers, others sync.WaitGroup
	var done atomic.Bool

	for w := range 2 { // the two change different hosts
		changers.Go(func() {
			for i := 0; i < 50 && !t.Failed(); i++ {
				h := (i*2 + w) % hosts
				truth[h].Add(1)
				x.Refresh(nil, []gozzard.HostAddr{{Cloud: h % 3, IP: addrOf(h)}}, look)
				check(h)
				check((h + hosts - 10) % hosts)
			}
		})
	}

	for _, work := range []func(){
		func() { x.Put(large, largeN); x.Put(small, smallN) },
		func() { x.Replace(large, largeN, look) },
		func() { x.RefreshBusiness(1, look) },
		func() { askAtOnce(t, x, processes) },
	} {
		others.Go(func() {
			for !done.Load() {
				work()
			}
		})
	}

	changers.Wait()
	done.Store(true)
	others.Wait()

	for h := range hosts {
		check(h)
	}
}

func askAtOnce(t *testing.T, x *index.Index, processes int) {
	q := topology.Query{Biz: 1, States: []gozzard.RunState{gozzard.StateRunning},
		Order: []topology.Order{{By: topology.ByName}}, Start: 3, Limit: 100}
	total, rows := x.Find(q)
	if want := min(100, max(total-3, 0)); len(rows) != want {
		t.Errorf("a page has %d rows, not %d", len(rows), want)
	}

	for _, r := range rows {
		if r.State != gozzard.StateRunning || !r.Hosted {
			t.Errorf("a query for running processes returned one that is %s (hosted: %v)", r.State, r.Hosted)
		}
	}

	n := 0
	for _, s := range x.Tree(1, topology.EnvAny, nil) {
		n += s.Running + s.Stopped + s.Unregistered
	}

	if n != processes && n != processes+200 {
		t.Errorf("the tree has %d processes", n)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the second one clears pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIndexMemory limits the memory for each process, sets, hosts and names included.
func TestIndexMemory(t *testing.T) {
	rows := min(*indexRows, 100_000)

	if testing.Short() {
		rows = 20_000
	}

	b, n := bigBusiness(1, rows)
	before := heapInUse()
	x := index.New()
	x.Put(b, n)
	bytes := float64(heapInUse()-before) / float64(rows)
	runtime.KeepAlive(b)
	runtime.KeepAlive(n)
	runtime.KeepAlive(x)
	t.Logf("%.1f bytes a process (%d of them)", bytes, rows)

	if bytes > 150 {
		t.Errorf("%.1f bytes a process, at most 150 are allowed", bytes)
	}
}

func BenchmarkIndex(b *testing.B) {
	rows := *indexRows
	business, numbers := bigBusiness(1, rows)
	x := index.New()
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			x.Put(business, numbers)
		}
	})

	x.Put(business, numbers)

	b.Run("refreshBusiness", func(b *testing.B) {
		for b.Loop() {
			x.RefreshBusiness(1, settled)
		}
	})

	x.RefreshBusiness(1, settled)

	b.Run("refreshHost", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h := i * 7 % (rows / perHost)
			x.Refresh(nil, []gozzard.HostAddr{{Cloud: h % 3, IP: addrOf(h)}}, settled)
		}
	})

	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			x.Tree(1, topology.EnvAny, nil)
		}
	})

	word := func(text string) *expression.Expression {
		e, err := expression.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}

	five := &topology.Expression{Set: word("*平台-*"), Module: word("gse_*"), Service: word("10.*[1-7]_*"),
		Name: word("[gse_agent,mysqld]*"), Process: word("*")}
	exact := &topology.Expression{Set: word("管控平台-0"), Module: word("gse_agent"), Service: word("10.0.0.1_gse_agent"),
		Name: word("gse_*"), Process: word("*")}
	numbersOnly := &topology.Expression{Process: word("[1000-99999]")}
	stopped := []gozzard.RunState{gozzard.StateStopped}
	for _, q := range []struct {
		name string
		topology.Query
	}{
		{"page1000", topology.Query{Limit: 1000}},
		{"page100", topology.Query{Limit: 100, Start: rows / 2}},
		{"pageEnv", topology.Query{Env: topology.EnvFormal, Limit: 100, Start: rows / 2}},
		{"stopped", topology.Query{Env: topology.EnvFormal, States: stopped, Limit: 100, Start: rows / 20}},
		{"set", topology.Query{Sets: []int{3}, Limit: 100}},
		{"ip", topology.Query{IPs: []netip.Addr{addrOf(77)}, Limit: 100}},
		{"ids", topology.Query{Processes: []int{1, 77, 4000}, Limit: 100}},
		{"alias", topology.Query{Names: []string{"mysqld-02"}, Limit: 100}},
		{"search", topology.Query{Searches: []string{"0.77"}, Limit: 100}},
		{"five", topology.Query{Env: topology.EnvFormal, Expression: five, Limit: 100}},
		{"fiveWays", topology.Query{Env: topology.EnvFormal, Expression: five, States: stopped, Clouds: []int{0, 1},
			Hosted: []bool{true}, Limit: 100}},
		{"exact", topology.Query{Env: topology.EnvFormal, Expression: exact, Limit: 100}},
		{"numbers", topology.Query{Env: topology.EnvFormal, Expression: numbersOnly, Limit: 100}},
		{"byIP", topology.Query{Order: []topology.Order{{By: topology.ByIP}}, Start: rows / 2, Limit: 100}},
		{"byNameSet", topology.Query{Order: []topology.Order{{By: topology.ByName, Descending: true},
			{By: topology.BySet}}, Start: rows / 2, Limit: 100}},
	} {
		b.Run(q.name, func(b *testing.B) {
			q.Biz = 1
			b.ReportAllocs()
			total := 0
			for b.Loop() {
				total, _ = x.Find(q.Query)
			}
			b.ReportMetric(float64(total), "rows")
		})
	}
}
