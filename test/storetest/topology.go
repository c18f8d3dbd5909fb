package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// TopologyRecord is a store of businesses with its audit: changes of businesses leave audit rows.
type TopologyRecord interface {
	control.TopologyStore
	Audit(ctx context.Context, limit int) ([]gozzard.AuditRow, error)
}

// RunTopology runs the contract of control.TopologyStore. open returns a new, empty store and closes it at the end of
// the test.
func RunTopology(t *testing.T, open func(t *testing.T) TopologyRecord) {
	for _, c := range []struct {
		name string
		test func(*testing.T, TopologyRecord)
	}{
		{"business: round trip", businessRoundTrip},
		{"business: changes", businessChanges},
		{"business: moves", businessMoves},
		{"business: several", businessSeveral},
		{"business: strange texts", businessStrange},
		{"business: many", businessMany},
		{"conflict: nothing is changed", businessConflict},
		{"conflict: 20 at once", businessConcurrent},
		{"above a quota", businessCharge},
		{"modules need a set, services a module", businessOrphans},
		{"readers see one version", businessOneVersion},
		{"services", services},
		{"not found and context", businessContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func topologyAudit(targets int) gozzard.AuditRow {
	return gozzard.AuditRow{At: start, Caller: gozzard.Caller{App: "bk_test", User: "admin", Asserted: true},
		Act: "topology:apply", Targets: targets}
}

func ip(i int) netip.Addr { return addr(i).IP }

// business makes a business with two sets of two modules each. A module has that many services, with two processes
// each.
func business(biz, services int) (topology.Business, []topology.Numbers) {
	b := topology.Business{ID: biz, Name: "蓝鲸", Clouds: []topology.Cloud{{ID: 0, Name: "default area"},
		{ID: 3, Name: "广州"}},
		Templates: []topology.ConfigTemplate{
			{ID: 2, Name: "MySQL配置", FileName: "mysql.ini", Path: "/etc", Owner: "root", Group: "root", Mode: "0644",
				Templates: []int{26, 27}},
			{ID: 4, Name: "plain", Processes: []int{101}},
		}}
	var numbers []topology.Numbers
	service, process := 0, 100
	for s := range 2 {
		set := topology.Set{ID: 5 + s, Name: fmt.Sprint("管控平台", s), Env: topology.EnvTest + topology.Env(2*s),
			Attributes: topology.NewExtra(map[string]string{"zone": fmt.Sprint("z", s), "note": `"a" \ <b>管`})}
		for m := range 2 {
			module := topology.Module{ID: 21 + 2*s + m, Name: fmt.Sprint("module-", m), ServiceTemplate: m * 26,
				Attributes: topology.NewExtra(map[string]string{"tier": fmt.Sprint("t", m)})}
			for i := range services {
				service++
				x := topology.ServiceInstance{ID: service, Name: fmt.Sprintf("%s_%d", ip(i), m),
					Host: topology.Host{Cloud: 3, IP: ip(i)}}
				if i%3 == 1 {
					x.Host = topology.Host{IPv6: netip.MustParseAddr("fd00::1"), Agent: agentID(i), ID: 70 + i}
					x.HostAttributes = topology.NewExtra(map[string]string{"rack": fmt.Sprint("r", i)})
				}
				for p := range 2 {
					process++
					alias := fmt.Sprint("gamesvr", p)
					x.Processes = append(x.Processes, fullProcess(process, alias))
					numbers = append(numbers, topology.Numbers{Process: process, Module: module.ID, Alias: alias,
						HostNum: i + 1, Per: 2, Count: 2})
				}
				module.Instances = append(module.Instances, x)
			}
			set.Modules = append(set.Modules, module)
		}
		b.Sets = append(b.Sets, set)
	}

	return b, numbers
}

func fullProcess(id int, alias string) topology.Process {
	return topology.Process{ID: id, Name: alias, FuncName: "java", Template: id % 3, Num: 2, Priority: -id,
		FuncID: "7", BindInfo: `[{"port":"80"}]`,
		User: "root", WorkPath: "/data/${inst_id}",
		PIDFile: "/run/x.pid", Start: "./start.sh \"<a> & b\"", Stop: "./stop.sh", Restart: "./restart.sh",
		Reload: "./reload.sh", ForceStop: "./kill.sh",
		Timeout: 61, StartCheckSecs: 7}
}

// newBusinessChange is the change that records a new business.
func newBusinessChange(b *topology.Business, numbers []topology.Numbers) topology.Change {
	c := topology.Change{Biz: b.ID, Name: b.Name, Clouds: b.Clouds, Templates: b.Templates, Left: b.Left, PutNumbers: numbers}
	for _, s := range b.Sets {
		for _, m := range s.Modules {
			for _, x := range m.Instances {
				c.PutServices = append(c.PutServices, topology.PlacedService{Module: m.ID, Service: x})
			}
			m.Instances = nil
			c.PutModules = append(c.PutModules, topology.PlacedModule{Set: s.ID, Module: m})
		}
		s.Modules = nil
		c.PutSets = append(c.PutSets, s)
	}

	return c
}

func saveBusiness(t *testing.T, s TopologyRecord, c topology.Change) {
	t.Helper()
	version, err := s.SaveBusiness(t.Context(), c, record.SourceFile, topologyAudit(len(c.PutServices)))
	must(t, err)
	equal(t, "version", version, c.Base+1)
}

func readBusiness(t *testing.T, s TopologyRecord, biz int) record.Business {
	t.Helper()
	rec, err := s.Business(t.Context(), biz)
	must(t, err)
	return rec
}

func businessRoundTrip(t *testing.T, s TopologyRecord) {
	left := []string{"process 7 is left out: 进程", `quotes " and 'these'`}
	b, numbers := business(2, 3)
	b.Left = left
	c := newBusinessChange(&b, numbers)
	slices.Reverse(c.PutServices) // the order of a change is not that of the record
	slices.Reverse(c.PutSets)
	slices.Reverse(c.PutModules)
	slices.Reverse(c.PutNumbers)
	saveBusiness(t, s, c)
	head := record.BusinessHead{ID: 2, Name: "蓝鲸", Version: 1, Source: record.SourceFile, At: start, Left: left}
	b, numbers = business(2, 3)
	b.Left = left
	equal(t, "business", readBusiness(t, s, 2), record.Business{BusinessHead: head, Business: b, Numbers: numbers})
	heads, err := s.Businesses(t.Context())
	must(t, err)
	equal(t, "heads", heads, []record.BusinessHead{head})
	rows, err := s.Audit(t.Context(), 10)
	must(t, err)
	audit := topologyAudit(12)
	audit.Seq = rows[0].Seq
	equal(t, "audit", rows, []gozzard.AuditRow{audit})
	saveBusiness(t, s, topology.Change{Biz: 3})
	equal(t, "an empty business", readBusiness(t, s, 3).Business, topology.Business{ID: 3})
}

func businessChanges(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 3)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	x := b.Sets[0].Modules[0].Instances[1]
	x.Name, x.Host, x.Processes = "renamed", topology.Host{Cloud: 9, IP: ip(9)}, x.Processes[:1]
	gone := b.Sets[0].Modules[0].Instances[2]
	added := topology.ServiceInstance{ID: 900, Name: "added", Host: topology.Host{IP: ip(7)}}
	set, module := topology.Set{ID: 5, Name: "other", Env: topology.EnvExperience},
		topology.Module{ID: 21, Name: "other module", ServiceTemplate: 9}
	number := topology.Numbers{Process: 101, Module: 21, Alias: "gamesvr0", HostNum: 40, Per: 3, Count: 3}
	version, err := s.SaveBusiness(t.Context(), topology.Change{
		Biz: 2, Base: 1, Name: "renamed", Clouds: b.Clouds[:1],
		PutSets: []topology.Set{set}, PutModules: []topology.PlacedModule{{Set: 5, Module: module}},
		PutServices:  []topology.PlacedService{{Module: 21, Service: x}, {Module: 21, Service: added}},
		DropServices: []int{gone.ID}, PutNumbers: []topology.Numbers{number}, DropNumbers: []int{105, 106, 4711},
	}, record.SourceCMDB, topologyAudit(1))
	must(t, err)
	equal(t, "version", version, int64(2))

	rec := readBusiness(t, s, 2)
	equal(t, "head", rec.BusinessHead, record.BusinessHead{ID: 2, Name: "renamed", Version: 2,
		Source: record.SourceCMDB, At: start})
	b.Name, b.Clouds, b.Templates = "renamed", b.Clouds[:1], nil
	set.Modules = b.Sets[0].Modules
	module.Instances = []topology.ServiceInstance{b.Sets[0].Modules[0].Instances[0], x, added}
	set.Modules[0] = module
	b.Sets[0] = set
	equal(t, "business", rec.Business, b)
	numbers = slices.DeleteFunc(numbers, func(n topology.Numbers) bool { return n.Process == 105 || n.Process == 106 })
	numbers[0] = number
	equal(t, "numbers", rec.Numbers, numbers)

	rest := topology.Change{Biz: 2, Base: 2, Name: "empty", DropSets: []int{5, 6}, DropModules: []int{21, 22, 23, 24}}
	for i := range 12 {
		rest.DropServices = append(rest.DropServices, i+1)
	}

	rest.DropServices = append(rest.DropServices, 900)
	for _, n := range numbers {
		rest.DropNumbers = append(rest.DropNumbers, n.Process)
	}

	saveBusiness(t, s, rest)
	rec = readBusiness(t, s, 2)
	equal(t, "an emptied business", rec.Business, topology.Business{ID: 2, Name: "empty"})
	equal(t, "its numbers", len(rec.Numbers), 0)
}

// businessMoves: a module moves to a new set and a service instance to another module, while their old set and module
// are removed.
func businessMoves(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 1)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	kept, moved := b.Sets[0].Modules[0], b.Sets[0].Modules[1].Instances[0]
	module := topology.PlacedModule{Set: 77, Module: topology.Module{ID: kept.ID, Name: kept.Name,
		ServiceTemplate: kept.ServiceTemplate, Attributes: kept.Attributes}}
	set := topology.Set{ID: 77, Name: "new", Env: topology.EnvFormal}
	saveBusiness(t, s, topology.Change{Biz: 2, Base: 1, Name: b.Name, PutSets: []topology.Set{set},
		PutModules:  []topology.PlacedModule{module},
		PutServices: []topology.PlacedService{{Module: kept.ID, Service: moved}}, DropSets: []int{5},
		DropModules: []int{22}})
	kept.Instances = []topology.ServiceInstance{kept.Instances[0], moved}
	set.Modules = []topology.Module{kept}
	equal(t, "sets", readBusiness(t, s, 2).Business.Sets, []topology.Set{b.Sets[1], set})
}

func businessSeveral(t *testing.T, s TopologyRecord) {
	for _, biz := range []int{9, 2, 100} { // the same ids in each
		b, numbers := business(biz, 2)
		b.Name = fmt.Sprint("biz ", biz)
		saveBusiness(t, s, newBusinessChange(&b, numbers))
	}

	saveBusiness(t, s, topology.Change{Biz: 9, Base: 1, Name: "changed", DropServices: []int{1, 2},
		DropNumbers: []int{101}})
	heads, err := s.Businesses(t.Context())
	must(t, err)
	var got []string
	for _, h := range heads {
		got = append(got, fmt.Sprintf("%d %s %d", h.ID, h.Name, h.Version))
	}

	equal(t, "heads", got, []string{"2 biz 2 1", "9 changed 2", "100 biz 100 1"})
	b, numbers := business(2, 2)
	b.Name = "biz 2"
	rec := readBusiness(t, s, 2)
	equal(t, "the other business", rec.Business, b)
	equal(t, "its numbers", rec.Numbers, numbers)
}

func businessStrange(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 1)
	b.Sets[0].Modules[0].Instances[0].Processes[0].Start = "printf '\x00\xff\u202e'"
	b.Sets[0].Name, b.Name, numbers[0].Alias = "a\x00b", "\xff", "\x00"
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	rec := readBusiness(t, s, 2)
	equal(t, "name", rec.Name, "\uFFFD")
	equal(t, "set", rec.Business.Sets[0].Name, "a\uFFFDb")
	equal(t, "command", rec.Business.Sets[0].Modules[0].Instances[0].Processes[0].Start, "printf '\x00\uFFFD\u202e'")
}

func businessMany(t *testing.T, s TopologyRecord) {
	b, numbers := business(2, 400)
	saveBusiness(t, s, newBusinessChange(&b, numbers))
	rec := readBusiness(t, s, 2)
	equal(t, "business", rec.Business, b)
	equal(t, "numbers", rec.Numbers, numbers)
}
