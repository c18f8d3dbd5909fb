package topology_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// texts that are hard to write and to read.
var texts = []string{
	"./start.sh", "a: b", "- x", "#", "'", `"`, `\`, "{a}", "[a]", "a # b", "null", "true", "~", "12", "0x1f", ".5",
	"1e3", "1.2.3.4", "2001-01-01", "a\nb\n", "\t", " a ", "蓝鲸", "${inst_id}", "é", "*", "&a", "!a", "%", "@",
	"`", "|", ">", "---", "...", "a\r\nb", "\u0085",
	"\u2028x", "\x01", "😀",
	"<<", "yes", "=", "\ufeff",
}

// business draws a business with few different ids, so that two of them have much in common.
func business(t *rapid.T) *topology.Business {
	b := &topology.Business{ID: 2, Name: rapid.SampledFrom([]string{"x", "蓝鲸", "a: b", "12", "null"}).Draw(t, "name")}
	for _, id := range some(t, "clouds", 0, 2) {
		b.Clouds = append(b.Clouds, topology.Cloud{ID: id,
			Name: rapid.SampledFrom([]string{"", "default area", "#1"}).Draw(t, "cloud")})
	}

	clouds := []int{0, 1}

	if len(b.Clouds) > 0 {
		clouds = nil
		for _, c := range b.Clouds {
			clouds = append(clouds, c.ID)
		}
	}

	modules, services, processes := some(t, "modules", 1, 4), some(t, "services", 1, 6), some(t, "processes", 1, 12)
	for _, id := range some(t, "sets", 1, 3) {
		set := topology.Set{ID: id, Name: fmt.Sprintf("s%d", id),
			Env: topology.Env(rapid.IntRange(1, 3).Draw(t, "env")), Attributes: extra(t)}
		for ; len(modules) > 0 && rapid.Bool().Draw(t, "more"); modules = modules[1:] {
			m := topology.Module{ID: modules[0], Name: rapid.SampledFrom([]string{"m", "n[1]", "o.p"}).Draw(t,
				"module")}
			m.ServiceTemplate = rapid.IntRange(0, 2).Draw(t, "service template")
			m.Attributes = extra(t)
			for ; len(services) > 0 && rapid.Bool().Draw(t, "more"); services = services[1:] {
				s := topology.ServiceInstance{ID: services[0], Name: fmt.Sprintf("i%d", services[0]),
					Host: host(t, rapid.SampledFrom(clouds).Draw(t, "cloud")), HostAttributes: extra(t)}
				for ; len(processes) > 0 && rapid.Bool().Draw(t, "more"); processes = processes[1:] {
					s.Processes = append(s.Processes, process(t, processes[0]))
				}
				m.Instances = append(m.Instances, s)
			}
			set.Modules = append(set.Modules, m)
		}
		b.Sets = append(b.Sets, set)
	}

	b.Templates = templates(t, b)
	b.Sort()
	return b
}

// some draws a part of the numbers from least to most, in any order.
func some(t *rapid.T, label string, least, most int) []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(least, most), 0, -1, rapid.ID[int]).Draw(t, label)
}

// extra draws attributes, with names and texts that are hard to write.
func extra(t *rapid.T) topology.Extra {
	names := rapid.SampledFrom([]string{"zone", "null", "yes", "_", "y", "No", "bk_platform"})
	texts := rapid.SampledFrom([]string{"", "z0", "a: b", "12", "null", "true", `"`, `\`, "<b>&", "{a}", "管", "#", "😀", "1e3", "~"})
	return topology.NewExtra(rapid.MapOfN(names, texts, 0, 3).Draw(t, "attributes"))
}

func host(t *rapid.T, cloud int) topology.Host {
	n := byte(rapid.IntRange(1, 200).Draw(t, "host"))
	h := topology.Host{Cloud: cloud, IP: netip.AddrFrom4([4]byte{10, 0, 0, n})}
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		h.Agent = gozzard.AgentID(fmt.Sprintf("a%d", n))
	case 1:
		h.IP, h.IPv6 = netip.Addr{}, netip.AddrFrom16([16]byte{0: 0xfd, 15: n})
	case 2:
		h = topology.Host{Cloud: cloud, Agent: gozzard.AgentID(fmt.Sprintf("b%d", n))}
	}
	return h
}

func process(t *rapid.T, id int) topology.Process {
	text := func(label string) string {
		if rapid.Bool().Draw(t, label+"?") {
			return ""
		}
		return rapid.SampledFrom(texts).Draw(t, label)
	}

	alias := rapid.SampledFrom([]string{"java", "12", "null", "网关 服"}).Draw(t, "alias")

	if rapid.Bool().Draw(t, "own alias") {
		alias += fmt.Sprint(id)
	}

	return topology.Process{
		ID: id, Name: alias, Template: rapid.IntRange(0, 2).Draw(t, "template"),
		Num:      rapid.IntRange(0, 3).Draw(t, "num"),
		Priority: rapid.IntRange(0, 3).Draw(t, "priority"),
		User:     rapid.SampledFrom([]string{"", "root", "12", "a b", "yes"}).Draw(t, "user"),
		WorkPath: rapid.SampledFrom([]string{"", "/a b/#", `C:\x`}).Draw(t, "path"),
		Start:    text("start"), Stop: text("stop"), ForceStop: text("kill"),
		Timeout: rapid.IntRange(0, 2).Draw(t, "timeout"),
	}
}

func templates(t *rapid.T, b *topology.Business) []topology.ConfigTemplate {
	var free []int
	for _, p := range processesOf(b) {
		if p.Template == 0 {
			free = append(free, p.ID)
		}
	}

	var list []topology.ConfigTemplate
	for _, id := range some(t, "templates", 1, 2) {
		c := topology.ConfigTemplate{ID: id, Name: fmt.Sprintf("t%d", id), FileName: "${x}.ini", Path: "/etc"}
		c.Mode = rapid.SampledFrom([]string{"", "0644", "755"}).Draw(t, "mode")
		if rapid.Bool().Draw(t, "bound") {
			c.Templates = []int{1, 2}
			c.Processes = slices.Clone(free)
		}
		list = append(list, c)
	}

	return list
}

func processesOf(b *topology.Business) []topology.Process {
	var all []topology.Process
	for _, s := range b.Sets {
		for _, m := range s.Modules {
			for _, i := range m.Instances {
				all = append(all, i.Processes...)
			}
		}
	}
	return all
}

// valid draws a business until it has no faults: aliases may clash on a host.
func valid(t *rapid.T, label string) *topology.Business {
	return rapid.Custom(business).Filter(func(b *topology.Business) bool { return len(b.Check()) == 0 }).Draw(t, label)
}

// same compares businesses. An empty list and no list are equal.
var same = gocmp.Options{cmpopts.EquateEmpty(), sameAddrs}

func TestFormatProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := valid(t, "business")
		doc, err := topology.Format(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := topology.Parse(doc)
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if diff := gocmp.Diff(b, again, same); diff != "" {
			t.Fatalf("%s\n%s", diff, doc)
		}
	})
}

// TestNumberProperty: after any changes, numbers are unique within module and alias, they stay while nothing changes,
// and a process keeps its numbers while the largest count of its role stays.
func TestNumberProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var numbers []topology.Numbers
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			b := valid(t, "business")
			next, err := topology.Number(numbers, b)
			if err != nil {
				t.Fatal(err)
			}
			checkNumbers(t, b, next)
			for _, n := range next {
				for _, o := range numbers {
					if o.Process == n.Process && o.Module == n.Module && o.Alias == n.Alias && o.Per == n.Per &&
						o.HostNum != n.HostNum {
						t.Fatalf("process %d had %+v, has %+v", n.Process, o, n)
					}
				}
			}
			if again, err := topology.Number(next, b); err != nil || !slices.Equal(again, next) {
				t.Fatalf("not stable: %v, then %v, %v", next, again, err)
			}
			numbers = next
		}
	})
}

func checkNumbers(t *rapid.T, b *topology.Business, numbers []topology.Numbers) {
	type inst struct {
		module int
		alias  string
		number int
	}
	seen := map[inst]int{}
	byID := map[int]topology.Numbers{}
	for _, n := range numbers {
		byID[n.Process] = n
		for local := 1; local <= n.Count; local++ {
			key := inst{n.Module, n.Alias, n.Inst(local)}
			if other, twice := seen[key]; twice || key.number < 1 {
				t.Fatalf("%+v is of %d and %d", key, other, n.Process)
			}
			seen[key] = n.Process
		}
	}

	all := processesOf(b)
	for _, p := range all {
		if n := byID[p.ID]; n.Alias != p.Name || n.Count != max(p.Num, 1) || n.Per < n.Count {
			t.Fatalf("process %+v has %+v", p, n)
		}
	}

	if len(all) != len(numbers) || !slices.IsSortedFunc(numbers,
		func(a, b topology.Numbers) int { return cmp.Compare(a.Process, b.Process) }) {
		t.Fatalf("%d processes, numbers %v", len(all), numbers)
	}
}

// TestCompareProperty: applying a change to the old state, as a store does, gives the new state. Without a difference
// the change is empty.
func TestCompareProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var old *topology.Business
		var oldN []topology.Numbers

		if rapid.Bool().Draw(t, "known") {
			old = valid(t, "old")
			oldN, _ = topology.Number(nil, old)
		}

		new := valid(t, "new")
		newN, err := topology.Number(oldN, new)
		if err != nil {
			t.Fatal(err)
		}

		change, plan := topology.Compare(old, oldN, new, newN)
		got, gotN := applied(old, oldN, change)
		if diff := gocmp.Diff(new, got, same); diff != "" {
			t.Fatal(diff)
		}
		if !slices.Equal(gotN, newN) {
			t.Fatalf("numbers are %v, want %v", gotN, newN)
		}
		if plan.Empty() != gocmp.Equal(old, new, same) {
			t.Fatalf("the plan is %+v", plan)
		}

		change, plan = topology.Compare(new, newN, new, newN)
		if rows := len(change.PutSets) + len(change.PutModules) + len(change.PutServices) +
			len(change.PutNumbers); rows != 0 || !plan.Empty() {
			t.Fatalf("nothing changed and %+v", change)
		}
	})
}

// applied applies a change as a store does.
func applied(old *topology.Business, oldN []topology.Numbers, c topology.Change) (*topology.Business,
	[]topology.Numbers) {
	sets, modules, services := map[int]topology.Set{}, map[int]topology.PlacedModule{}, map[int]topology.PlacedService{}

	if old != nil {
		for _, s := range old.Sets {
			for _, m := range s.Modules {
				for _, i := range m.Instances {
					services[i.ID] = topology.PlacedService{Module: m.ID, Service: i}
				}
				m.Instances = nil
				modules[m.ID] = topology.PlacedModule{Set: s.ID, Module: m}
			}
			s.Modules = nil
			sets[s.ID] = s
		}
	}

	put(sets, c.PutSets, c.DropSets, func(s topology.Set) int { return s.ID })
	put(modules, c.PutModules, c.DropModules, func(m topology.PlacedModule) int { return m.Module.ID })
	put(services, c.PutServices, c.DropServices, func(s topology.PlacedService) int { return s.Service.ID })
	b := &topology.Business{ID: c.Biz, Name: c.Name, Clouds: c.Clouds, Templates: c.Templates}
	for _, s := range sets {
		for _, m := range modules {
			if m.Set != s.ID {
				continue
			}
			for _, i := range services {
				if i.Module == m.Module.ID {
					m.Module.Instances = append(m.Module.Instances, i.Service)
				}
			}
			s.Modules = append(s.Modules, m.Module)
		}
		b.Sets = append(b.Sets, s)
	}

	b.Sort()
	numbers := map[int]topology.Numbers{}
	put(numbers, oldN, nil, func(n topology.Numbers) int { return n.Process })
	put(numbers, c.PutNumbers, c.DropNumbers, func(n topology.Numbers) int { return n.Process })
	var list []topology.Numbers
	for _, n := range numbers {
		list = append(list, n)
	}

	slices.SortFunc(list, func(a, b topology.Numbers) int { return cmp.Compare(a.Process, b.Process) })
	return b, list
}

func put[T any](in map[int]T, list []T, drop []int, id func(T) int) {
	for _, x := range list {
		in[id(x)] = x
	}
	for _, x := range drop {
		delete(in, x)
	}
}
