package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// builder makes columns of a business. Its maps are gone when the columns are there.
type builder struct {
	c            *columns
	moduleNames  texts
	serviceNames texts
	aliases      texts
	hosts        map[topology.Host]uint32
	kinds        map[kindKey]uint32
	bound        map[int][]topology.ConfigRef // by process template
	found        []found
}

// found is a process on its way to its row.
type found struct {
	id            int
	service, kind uint32
}

type kindKey struct {
	alias              uint32
	template, priority int
}

// texts gives each distinct text a number. What it keeps shares no memory with what it was given: that may be a
// part of a whole document.
type texts struct {
	numbers map[string]uint32
	list    []string
}

func (t *texts) number(s string) uint32 {
	if n, ok := t.numbers[s]; ok {
		return n
	}
	if t.numbers == nil {
		t.numbers = make(map[string]uint32)
	}
	s = strings.Clone(s)
	n := uint32(len(t.list))
	t.list, t.numbers[s] = append(t.list, s), n
	return n
}

func build(b *topology.Business, n []topology.Numbers) *columns {
	w := &builder{c: &columns{biz: b.ID, namespace: topology.Namespace(b.ID)}, hosts: make(map[topology.Host]uint32),
		kinds: make(map[kindKey]uint32)}
	w.bindings(b.Templates)
	w.tree(b)
	w.sortAliases()
	w.nameHosts(b.Clouds)
	w.processes(n)
	c := w.c
	// without the room to grow
	c.moduleNames, c.serviceNames = slices.Clone(w.moduleNames.list), slices.Clone(w.serviceNames.list)
	c.modules, c.services, c.kinds = slices.Clone(c.modules), slices.Clone(c.services), slices.Clone(c.kinds)
	c.serviceRows = newLists(len(c.services), func(yield func(uint32)) {
		for _, s := range c.service {
			yield(s)
		}
	})

	c.serviceKinds = make([]uint32, len(c.ids))
	for i, row := range c.serviceRows.items {
		c.serviceKinds[i] = c.kind[row]
	}

	c.aliasRows = newLists(len(c.aliases), func(yield func(uint32)) {
		for row := range c.ids {
			yield(c.aliasOf(uint32(row)))
		}
	})

	c.modulesByID = placesBy(len(c.modules), func(a,
		b uint32) int {
		return cmp.Compare(c.modules[a].id, c.modules[b].id)
	})

	c.moduleRank = make([]uint32, len(c.modules))
	for rank, m := range c.modulesByID {
		c.moduleRank[m] = uint32(rank)
	}

	c.servicesByID = placesBy(len(c.services), func(a,
		b uint32) int {
		return cmp.Compare(c.services[a].id, c.services[b].id)
	})

	c.servicesByName = placesBy(len(c.services), func(a,
		b uint32) int {
		return cmp.Compare(c.serviceName(a), c.serviceName(b))
	})

	c.markEnvs()
	return c
}

// places are 0 to n-1.
func places(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

// placesBy are the places 0 to n-1 in an order.
func placesBy(n int, order func(a, b uint32) int) []uint32 {
	list := places(n)
	slices.SortStableFunc(list, order)
	return list
}

// byID are the elements of a list in order of their ids. The list itself is the caller's and stays as it is.
func byID[T any](list []T, id func(*T) int) []*T {
	sorted := make([]*T, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	slices.SortStableFunc(sorted, func(a, b *T) int { return cmp.Compare(id(a), id(b)) })
	return sorted
}

// bindings collects which configuration templates belong to which process templates and processes, in order of the
// templates' ids.
func (w *builder) bindings(all []topology.ConfigTemplate) {
	w.bound, w.c.configs = make(map[int][]topology.ConfigRef), make(map[int][]topology.ConfigRef)
	for _, t := range byID(all, func(t *topology.ConfigTemplate) int { return t.ID }) {
		ref := topology.ConfigRef{ID: t.ID, Name: strings.Clone(t.Name), FileName: strings.Clone(t.FileName)}
		bind(w.bound, t.Templates, ref)
		bind(w.c.configs, t.Processes, ref)
	}
}

// bind adds a reference to each id, once if an id is there twice.
func bind(refs map[int][]topology.ConfigRef, ids []int, ref topology.ConfigRef) {
	for _, id := range ids {
		if list := refs[id]; len(list) == 0 || list[len(list)-1] != ref {
			refs[id] = append(list, ref)
		}
	}
}

// tree places sets, modules and services, and finds all processes.
func (w *builder) tree(b *topology.Business) {
	for _, s := range byID(b.Sets, func(s *topology.Set) int { return s.ID }) {
		set := setEntry{id: s.ID, name: strings.Clone(s.Name), env: s.Env,
			modules: span{from: uint32(len(w.c.modules))}}
		for _, m := range byID(s.Modules, func(m *topology.Module) int { return m.ID }) {
			w.module(m, uint32(len(w.c.sets)))
		}
		set.modules.to = uint32(len(w.c.modules))
		w.c.sets = append(w.c.sets, set)
	}
}

func (w *builder) module(m *topology.Module, set uint32) {
	place := uint32(len(w.c.modules))
	from := uint32(len(w.c.services))

	for _, v := range byID(m.Instances, func(v *topology.ServiceInstance) int { return v.ID }) {
		host, ok := w.hosts[v.Host]
		if !ok {
			h := v.Host
			h.Agent = gozzard.AgentID(strings.Clone(string(h.Agent)))
			host = uint32(len(w.c.hosts))
			w.c.hosts, w.hosts[h] = append(w.c.hosts, hostEntry{Host: h}), host
		}
		for i := range v.Processes {
			w.found = append(w.found, found{v.Processes[i].ID, uint32(len(w.c.services)), w.kindOf(&v.Processes[i])})
		}
		w.c.services = append(w.c.services, serviceEntry{id: v.ID, name: w.serviceNames.number(v.Name), module: place,
			host: host})
	}

	w.c.modules = append(w.c.modules, moduleEntry{
		id: m.ID, template: m.ServiceTemplate, name: w.moduleNames.number(m.Name), set: set,
		services: span{from, uint32(len(w.c.services))},
	})
}

// sortAliases gives aliases their places in the order of the alphabet.
func (w *builder) sortAliases() {
	names := w.aliases.list
	order := placesBy(len(names), func(a, b uint32) int { return cmp.Compare(names[a], names[b]) })
	moved := make([]uint32, len(names))
	w.c.aliases = make([]string, len(names))
	for to, from := range order {
		w.c.aliases[to], moved[from] = names[from], uint32(to)
	}
	for i := range w.c.kinds {
		w.c.kinds[i].alias = moved[w.c.kinds[i].alias]
	}
}

// nameHosts sorts the hosts by address, and makes the ways to find them.
func (w *builder) nameHosts(clouds []topology.Cloud) {
	c := w.c
	order := placesBy(len(c.hosts), func(a, b uint32) int {
		return cmp.Or(c.hosts[a].IP.Compare(c.hosts[b].IP), cmp.Compare(c.hosts[a].Cloud, c.hosts[b].Cloud))
	})

	sorted, moved := make([]hostEntry, len(order)), make([]uint32, len(order))
	for to, from := range order {
		sorted[to], moved[from] = c.hosts[from], uint32(to)
		sorted[to].rank = uint32(to)
		if to > 0 && sorted[to-1].IP == sorted[to].IP {
			sorted[to].rank = sorted[to-1].rank
		}
	}

	c.hosts = sorted
	for i := range c.services {
		c.services[i].host = moved[c.services[i].host]
	}

	c.hostServices = newLists(len(c.hosts), func(yield func(uint32)) {
		for i := range c.services {
			yield(c.services[i].host)
		}
	})

	for h := range uint32(len(c.hosts)) {
		if c.hosts[h].IPv6.IsValid() {
			c.hostsByIPv6 = append(c.hostsByIPv6, h)
		}
		if c.hosts[h].Agent != "" {
			c.hostsByAgent = append(c.hostsByAgent, h)
		}
	}

	c.hostsByIPv6, c.hostsByAgent = slices.Clone(c.hostsByIPv6), slices.Clone(c.hostsByAgent)
	slices.SortStableFunc(c.hostsByIPv6, func(a, b uint32) int {
		return compareIPv6(&c.hosts[a].Host,
			&c.hosts[b].Host)
	})

	slices.SortStableFunc(c.hostsByAgent, func(a, b uint32) int {
		return cmp.Compare(c.hosts[a].Agent,
			c.hosts[b].Agent)
	})

	w.nameClouds(clouds)
}

func compareIPv6(a, b *topology.Host) int {
	return cmp.Or(a.IPv6.Compare(b.IPv6), cmp.Compare(a.Cloud, b.Cloud))
}

func (w *builder) nameClouds(clouds []topology.Cloud) {
	c := w.c
	names := make(map[int]string, len(clouds))
	for _, l := range clouds {
		names[l.ID] = l.Name
	}

	places := make(map[int]uint32)
	for i := range c.hosts {
		places[c.hosts[i].Cloud] = 0
	}

	for id := range places {
		c.clouds = append(c.clouds, topology.Cloud{ID: id, Name: strings.Clone(names[id])})
	}

	slices.SortFunc(c.clouds, func(a, b topology.Cloud) int { return cmp.Compare(a.ID, b.ID) })

	for i, l := range c.clouds {
		places[l.ID] = uint32(i)
	}

	for i := range c.hosts {
		c.hosts[i].cloud = places[c.hosts[i].Cloud]
	}
}

// processes makes the rows.
func (w *builder) processes(n []topology.Numbers) {
	slices.SortFunc(w.found, func(a, b found) int {
		if a.id != b.id {
			return cmp.Compare(a.id, b.id)
		}
		return cmp.Compare(a.service, b.service)
	})

	byProcess := func(a, b topology.Numbers) int { return cmp.Compare(a.Process, b.Process) }
	if !slices.IsSortedFunc(n, byProcess) {
		n = slices.SortedFunc(slices.Values(n), byProcess)
	}

	c, rows := w.c, len(w.found)
	c.ids, c.base = make([]int, rows), make([]int, rows)
	c.service, c.kind, c.first = make([]uint32, rows), make([]uint32, rows), make([]uint32, rows+1)
	next := 0
	for row, f := range w.found {
		c.ids[row], c.service[row], c.kind[row] = f.id, f.service, f.kind
		for next < len(n) && n[next].Process < f.id {
			next++
		}
		c.first[row+1] = c.first[row]
		if next < len(n) && n[next].Process == f.id {
			c.base[row] = n[next].Inst(0)
			c.first[row+1] += uint32(max(n[next].Count, 0))
		}
	}

	c.columnsOfStatus()
}

func (c *columns) columnsOfStatus() {
	rows := len(c.ids)
	c.status = make([]status, c.first[rows])
	c.running, c.stopped, c.hosted = newBits(rows), newBits(rows), newBits(rows)
}

func (w *builder) kindOf(p *topology.Process) uint32 {
	key := kindKey{w.aliases.number(p.Name), p.Template, p.Priority}
	place, ok := w.kinds[key]
	if !ok {
		k := kind{alias: key.alias, template: p.Template, priority: p.Priority}
		if p.Template != 0 {
			k.configs = w.bound[p.Template]
		}
		place = uint32(len(w.c.kinds))
		w.c.kinds, w.kinds[key] = append(w.c.kinds, k), place
	}
	return place
}

// markEnvs makes the sets of rows by environment.
func (c *columns) markEnvs() {
	for i := range c.envs {
		c.envs[i] = newBits(len(c.ids))
	}
	for row, s := range c.service {
		if env := c.sets[c.modules[c.services[s].module].set].env; env.Valid() {
			c.envs[env].set(uint32(row))
		}
	}
}
