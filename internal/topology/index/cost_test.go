package index

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
)

var costRows = flag.Int("index.costrows", 1_000_000, "processes of the business in BenchmarkCosts")

// costColumns makes a business with five processes in each service instance, and 40 aliases. Process ids are random, so
// neighbouring rows are in distant services, as in a business that has changed for years.
func costColumns(processes int) *columns {
	const perService, perModule, perSet = 5, 50, 8
	ids := rand.New(rand.NewPCG(1, 2)).Perm(processes)
	b := &topology.Business{ID: 1}
	for i := range processes {
		service := i / perService
		module := service / perModule
		if i%(perService*perModule*perSet) == 0 {
			b.Sets = append(b.Sets, topology.Set{ID: 1 + len(b.Sets), Name: fmt.Sprint("set-", len(b.Sets)),
				Env: topology.EnvFormal})
		}
		set := &b.Sets[len(b.Sets)-1]
		if i%(perService*perModule) == 0 {
			set.Modules = append(set.Modules, topology.Module{ID: 1 + module, Name: fmt.Sprint("module-", module%40)})
		}
		m := &set.Modules[len(set.Modules)-1]
		if i%perService == 0 {
			h := topology.Host{IP: netip.AddrFrom4([4]byte{10, byte(service >> 16), byte(service >> 8), byte(service)})}
			m.Instances = append(m.Instances, topology.ServiceInstance{ID: 1 + service,
				Name: fmt.Sprintf("%s_%s", h.IP, m.Name), Host: h})
		}
		v := &m.Instances[len(m.Instances)-1]
		v.Processes = append(v.Processes, topology.Process{ID: 1 + ids[i], Name: fmt.Sprint("alias-", i%40)})
	}

	return build(b, nil)
}

// BenchmarkCosts measures what the constants costOfRow, costOfService and costOfJump stand for: the time for a
// candidate of each kind. Testing a service costs more the more is asked of it, so there are three queries. None
// matches a service.
func BenchmarkCosts(b *testing.B) {
	c := costColumns(*costRows)
	wildcard, err := expression.Parse("10.*_nothing")
	if err != nil {
		b.Fatal(err)
	}

	aliases := func(f *filter) {
		list, _ := f.aliasList(1)
		f.scanAliases(list)
	}
	all := func(f *filter) { f.scanServices([]span{{0, uint32(len(c.services))}}) }

	names := []string{"alias-7"}
	costOf(b, "row", c, len(c.ids)/40, topology.Query{Names: names}, aliases)
	for name, q := range map[string]topology.Query{
		"module":   {Modules: []int{-1}},
		"host":     {Clouds: []int{-1}},
		"wildcard": {Expression: &topology.Expression{Service: wildcard}},
	} {
		costOf(b, "service/"+name, c, len(c.services), q, all)
		q.Names = names
		costOf(b, "jump/"+name, c, len(c.ids)/40, q, aliases)
	}
}

// costOf measures a scan of a number of candidates.
func costOf(b *testing.B, name string, c *columns, candidates int, q topology.Query, scan func(*filter)) {
	b.Run(name, func(b *testing.B) {
		s := new(scratch)
		for b.Loop() {
			b.StopTimer()
			f := newFilter(c, s, &q)
			s.rows = s.rows.resize(len(c.ids), false)
			b.StartTimer()
			scan(f)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*candidates), "ns/candidate")
	})
}
