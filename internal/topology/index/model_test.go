package index_test

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/topology/index"
)

// naive is an index without any concern for time and memory: every query looks at every process.
type naive struct {
	all map[int]*naiveBusiness
}

type naiveBusiness struct {
	sets  []index.SetCount // without counts
	hosts []topology.Host
	rows  []topology.Row // by process id
}

// naiveKey names an instance, independent of the version of the business.
type naiveKey struct {
	host  topology.Host
	alias string
	local int
}

func (m *naive) put(b *topology.Business, numbers []topology.Numbers) {
	kept := map[naiveKey]topology.Status{}

	if old := m.all[b.ID]; old != nil {
		old.instances(func(k naiveKey, s *topology.Status) { kept[k] = *s })
	}

	n := &naiveBusiness{}
	clouds := map[int]string{}
	for _, c := range b.Clouds {
		clouds[c.ID] = c.Name
	}

	for _, s := range b.Sets {
		set := index.SetCount{ID: s.ID, Name: s.Name, Env: s.Env, Modules: []index.ModuleCount{}}
		for _, mod := range s.Modules {
			set.Modules = append(set.Modules, index.ModuleCount{ID: mod.ID, Name: mod.Name,
				ServiceTemplate: mod.ServiceTemplate, Services: len(mod.Instances)})
			for _, v := range mod.Instances {
				if !slices.Contains(n.hosts, v.Host) {
					n.hosts = append(n.hosts, v.Host)
				}
				for _, p := range v.Processes {
					n.rows = append(n.rows, topology.Row{
						Biz: b.ID, Set: s.ID, SetName: s.Name, Env: s.Env,
						Module: mod.ID, ModuleName: mod.Name, ServiceTemplate: mod.ServiceTemplate,
						Service: v.ID, ServiceName: v.Name, Host: v.Host, CloudName: clouds[v.Host.Cloud],
						Process: p.ID, Name: p.Name, Template: p.Template, Priority: p.Priority,
						Configs: naiveConfigs(b, &p), Instances: naiveInstances(numbers, p.ID),
					})
				}
			}
		}
		slices.SortFunc(set.Modules, func(a, b index.ModuleCount) int { return a.ID - b.ID })
		n.sets = append(n.sets, set)
	}

	slices.SortFunc(n.sets, func(a, b index.SetCount) int { return a.ID - b.ID })
	slices.SortFunc(n.rows, func(a, b topology.Row) int { return a.Process - b.Process })
	n.instances(func(k naiveKey, s *topology.Status) { *s = kept[k] })
	m.all[b.ID] = n
}

func naiveConfigs(b *topology.Business, p *topology.Process) (refs []topology.ConfigRef) {
	for _, t := range slices.SortedFunc(slices.Values(b.Templates),
		func(a, b topology.ConfigTemplate) int { return a.ID - b.ID }) {
		if p.Template != 0 && slices.Contains(t.Templates, p.Template) || p.Template == 0 &&
			slices.Contains(t.Processes, p.ID) {
			refs = append(refs, topology.ConfigRef{ID: t.ID, Name: t.Name, FileName: t.FileName})
		}
	}
	return refs
}

func naiveInstances(numbers []topology.Numbers, process int) []topology.RowInstance {
	list := []topology.RowInstance{}
	for _, n := range numbers {
		for local := 1; n.Process == process && local <= n.Count; local++ {
			list = append(list, topology.RowInstance{Local: local, Inst: n.Inst(local)})
		}
	}
	return list
}

// instances calls f for every instance.
func (n *naiveBusiness) instances(f func(k naiveKey, s *topology.Status)) {
	for i := range n.rows {
		r := &n.rows[i]
		for j := range r.Instances {
			f(naiveKey{r.Host, r.Name, r.Instances[j].Local}, &r.Instances[j].Status)
		}
	}
}

func (m *naive) refresh(agents []gozzard.AgentID, addrs []gozzard.HostAddr, look index.Look) {
	for biz, n := range m.all {
		m.refreshIf(biz, n, look, func(h topology.Host) bool {
			return h.Agent != "" && slices.Contains(agents, h.Agent) ||
				slices.ContainsFunc(addrs, func(a gozzard.HostAddr) bool {
					return a.Cloud == h.Cloud && a.IP.IsValid() && (a.IP == h.IP || a.IP == h.IPv6)
				})
		})
	}
}

func (m *naive) refreshIf(biz int, n *naiveBusiness, look index.Look, is func(topology.Host) bool) {
	n.instances(func(k naiveKey, s *topology.Status) {
		if is(k.host) {
			out := make([]topology.Status, 1)
			look(k.host, []gozzard.Key{topology.Key(biz, k.alias, k.local)}, out)
			*s = topology.Status{State: out[0].State, Hosted: out[0].Hosted}
		}
	})
}

func (m *naive) find(q topology.Query) (int, []topology.Row) {
	n := m.all[q.Biz]
	if n == nil {
		return 0, nil
	}

	var list []topology.Row
	for _, r := range n.rows {
		var all []topology.Status
		for _, i := range r.Instances {
			all = append(all, i.Status)
		}
		r.State, r.Hosted = topology.Together(all)
		if naiveNamed(&q, &r) {
			list = append(list, r)
		}
	}

	if q.Expression != nil && q.Expression.Slice != nil {
		from, to := q.Expression.Slice.Bounds(len(list))
		list = list[from:to]
	}

	list = slices.DeleteFunc(slices.Clone(list), func(r topology.Row) bool { return !naiveFits(&q, &r) })
	slices.SortStableFunc(list, func(a, b topology.Row) int { return naiveOrder(q.Order, &a, &b) })
	total := len(list)
	list = list[min(max(q.Start, 0), total):]

	if q.Limit >= 0 {
		list = list[:min(q.Limit, len(list))]
	}

	return total, list
}

func naiveNamed(q *topology.Query, r *topology.Row) bool {
	if q.Visible != nil && !q.Visible(&r.Host) {
		return false
	}
	if q.Env != topology.EnvAny && q.Env != r.Env {
		return false
	}
	e := q.Expression
	return e == nil || naiveMatch(e.Set, r.SetName) && naiveMatch(e.Module, r.ModuleName) &&
		naiveMatch(e.Service, r.ServiceName) && naiveMatch(e.Name, r.Name) &&
		naiveMatch(e.Process, strconv.Itoa(r.Process))
}

func naiveMatch(e *expression.Expression, s string) bool { return e == nil || e.Match(s) }

func naiveIn[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

func naiveFits(q *topology.Query, r *topology.Row) bool {
	for _, term := range q.Searches {
		if !(r.Host.IP.IsValid() && strings.Contains(r.Host.IP.String(), term)) &&
			!strings.Contains(r.CloudName, term) {
			return false
		}
	}
	return naiveIn(q.Sets, r.Set) && naiveIn(q.SetNames, r.SetName) &&
		naiveIn(q.Modules, r.Module) && naiveIn(q.ModuleNames, r.ModuleName) &&
		naiveIn(q.Services, r.Service) && naiveIn(q.ServiceNames, r.ServiceName) &&
		naiveIn(q.Processes, r.Process) && naiveIn(q.Names, r.Name) &&
		naiveIn(q.Clouds, r.Host.Cloud) && naiveIn(q.IPs, r.Host.IP) &&
		naiveIn(q.States, r.State) && naiveIn(q.Hosted, r.Hosted)
}

func naiveOrder(keys []topology.Order, a, b *topology.Row) int {
	for _, k := range keys {
		n := 0
		switch k.By {
		case topology.ByProcess:
			n = cmp.Compare(a.Process, b.Process)
		case topology.BySet:
			n = cmp.Compare(a.Set, b.Set)
		case topology.ByModule:
			n = cmp.Compare(a.Module, b.Module)
		case topology.ByName:
			n = cmp.Compare(a.Name, b.Name)
		case topology.ByIP:
			n = a.Host.IP.Compare(b.Host.IP)
		}
		if k.Descending {
			n = -n
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

func (m *naive) tree(biz int, env topology.Env) (tree []index.SetCount) {
	n := m.all[biz]
	if n == nil {
		return nil
	}

	for _, s := range n.sets {
		if env != topology.EnvAny && s.Env != env {
			continue
		}
		s.Modules = slices.Clone(s.Modules)
		for i := range s.Modules {
			_, rows := m.find(topology.Query{Biz: biz, Modules: []int{s.Modules[i].ID}, Limit: -1})
			for _, r := range rows {
				naiveCount(&s.Counts, &r)
				naiveCount(&s.Modules[i].Counts, &r)
			}
		}
		tree = append(tree, s)
	}

	return tree
}

func naiveCount(n *index.Counts, r *topology.Row) {
	n.Processes++
	switch r.State {
	case gozzard.StateRunning:
		n.Running++
	case gozzard.StateStopped:
		n.Stopped++
	default:
		n.Unregistered++
	}
	if r.Hosted {
		n.Hosted++
	}
}

// sameRows describes how rows differ. It is "" when they are equal.
func sameRows(want, got []topology.Row) string {
	// This is much faster than Diff.
	if len(want) == len(got) && (len(want) == 0 || reflect.DeepEqual(want, got)) {
		return ""
	}
	return gocmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}))
}

// addrOf is the address of host h in the businesses of tests.
func addrOf(h int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)})
}
