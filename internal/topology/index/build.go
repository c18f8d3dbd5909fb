package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/topology"
)

// builder makes the columns of a business. Its maps are only needed meanwhile.
type builder struct {
	c            *columns
	moduleNames  interner
	serviceNames interner
	aliases      interner
	hosts        map[topology.Host]uint32
	kinds        map[kindKey]uint32
	bound        map[int][]topology.ConfigRef // by process template
	found        []process
}

// process is a process that has no row yet.
type process struct {
	id            int
	service, kind uint32
}

type kindKey struct {
	alias              uint32
	template, priority int
}

// interner gives each distinct text a number. It copies the texts: they may be parts of a large document, which would
// stay in memory with them.
type interner struct {
	numbers map[string]uint32
	list    []string
}

func (t *interner) number(s string) uint32 {
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

// build makes the columns of a business. n has the instance numbers of its processes.
func build(b *topology.Business, n []topology.Numbers) *columns {
	w := &builder{
		c:     &columns{biz: b.ID, namespace: topology.Namespace(b.ID)},
		hosts: make(map[topology.Host]uint32),
		kinds: make(map[kindKey]uint32),
	}
	w.bindConfigs(b.Templates)
	w.addSets(b)
	w.sortAliases()
	w.indexHosts(b.Clouds)
	w.addRows(n)

	// Clone what was appended to, to drop the spare capacity.
	c := w.c
	c.moduleNames, c.serviceNames = slices.Clone(w.moduleNames.list), slices.Clone(w.serviceNames.list)
	c.modules, c.services, c.kinds = slices.Clone(c.modules), slices.Clone(c.services), slices.Clone(c.kinds)

	c.indexRows()
	c.indexTree()
	c.groupByEnv()
	return c
}

// indexRows makes the lists that lead from services and aliases to rows.
func (c *columns) indexRows() {
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
}

// indexTree makes the orders in which modules and services are searched by id and name.
func (c *columns) indexTree() {
	c.modulesByID = positionsBy(len(c.modules), func(a, b uint32) int {
		return cmp.Compare(c.modules[a].id, c.modules[b].id)
	})

	c.moduleRank = make([]uint32, len(c.modules))
	for rank, m := range c.modulesByID {
		c.moduleRank[m] = uint32(rank)
	}

	c.servicesByID = positionsBy(len(c.services), func(a, b uint32) int {
		return cmp.Compare(c.services[a].id, c.services[b].id)
	})

	c.servicesByName = positionsBy(len(c.services), func(a, b uint32) int {
		return cmp.Compare(c.serviceName(a), c.serviceName(b))
	})
}

// positions returns the numbers 0 to n-1.
func positions(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

// positionsBy returns the numbers 0 to n-1 in an order.
func positionsBy(n int, order func(a, b uint32) int) []uint32 {
	list := positions(n)
	slices.SortStableFunc(list, order)
	return list
}

// byID returns pointers to the elements of a list, in the order of their ids. It does not change the list.
func byID[T any](list []T, id func(*T) int) []*T {
	sorted := make([]*T, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	slices.SortStableFunc(sorted, func(a, b *T) int { return cmp.Compare(id(a), id(b)) })
	return sorted
}

// bindConfigs collects the configuration templates of process templates and of processes, in the order of their ids.
func (w *builder) bindConfigs(all []topology.ConfigTemplate) {
	w.bound, w.c.configs = make(map[int][]topology.ConfigRef), make(map[int][]topology.ConfigRef)
	for _, t := range byID(all, func(t *topology.ConfigTemplate) int { return t.ID }) {
		ref := topology.ConfigRef{ID: t.ID, Name: strings.Clone(t.Name), FileName: strings.Clone(t.FileName)}
		bind(w.bound, t.Templates, ref)
		bind(w.c.configs, t.Processes, ref)
	}
}

// bind adds a reference to each id. If an id is in the list twice, it adds the reference once.
func bind(refs map[int][]topology.ConfigRef, ids []int, ref topology.ConfigRef) {
	for _, id := range ids {
		if list := refs[id]; len(list) == 0 || list[len(list)-1] != ref {
			refs[id] = append(list, ref)
		}
	}
}

// addSets adds sets, modules and services to the columns, and collects all processes.
func (w *builder) addSets(b *topology.Business) {
	for _, s := range byID(b.Sets, func(s *topology.Set) int { return s.ID }) {
		set := setEntry{id: s.ID, name: strings.Clone(s.Name), env: s.Env,
			modules: span{from: uint32(len(w.c.modules))}}
		for _, m := range byID(s.Modules, func(m *topology.Module) int { return m.ID }) {
			w.addModule(m, uint32(len(w.c.sets)))
		}
		set.modules.to = uint32(len(w.c.modules))
		w.c.sets = append(w.c.sets, set)
	}
}

// addModule adds a module with its services. set is the position of its set.
func (w *builder) addModule(m *topology.Module, set uint32) {
	position := uint32(len(w.c.modules))
	from := uint32(len(w.c.services))

	for _, v := range byID(m.Instances, func(v *topology.ServiceInstance) int { return v.ID }) {
		for i := range v.Processes {
			p := &v.Processes[i]
			w.found = append(w.found, process{p.ID, uint32(len(w.c.services)), w.addKind(p)})
		}
		w.c.services = append(w.c.services, serviceEntry{
			id: v.ID, name: w.serviceNames.number(v.Name), module: position, host: w.addHost(v.Host),
		})
	}

	w.c.modules = append(w.c.modules, moduleEntry{
		id: m.ID, template: m.ServiceTemplate, name: w.moduleNames.number(m.Name), set: set,
		services: span{from, uint32(len(w.c.services))},
	})
}

// sortAliases sorts the aliases and corrects the kinds, which refer to them.
func (w *builder) sortAliases() {
	names := w.aliases.list
	order := positionsBy(len(names), func(a, b uint32) int { return cmp.Compare(names[a], names[b]) })
	moved := make([]uint32, len(names))
	w.c.aliases = make([]string, len(names))
	for to, from := range order {
		w.c.aliases[to], moved[from] = names[from], uint32(to)
	}
	for i := range w.c.kinds {
		w.c.kinds[i].alias = moved[w.c.kinds[i].alias]
	}
}

// addRows makes the rows of all processes that addSets collected.
func (w *builder) addRows(n []topology.Numbers) {
	// Sort processes and instance numbers by process id.
	slices.SortFunc(w.found, func(a, b process) int {
		if a.id != b.id {
			return cmp.Compare(a.id, b.id)
		}
		return cmp.Compare(a.service, b.service)
	})

	byProcess := func(a, b topology.Numbers) int { return cmp.Compare(a.Process, b.Process) }
	if !slices.IsSortedFunc(n, byProcess) {
		n = slices.SortedFunc(slices.Values(n), byProcess)
	}

	// Merge them.
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

	c.makeStatuses()
}

// makeStatuses makes the columns of statuses. All instances are unregistered.
func (c *columns) makeStatuses() {
	rows := len(c.ids)
	c.status = make([]status, c.first[rows])
	c.running, c.stopped, c.hosted = newRowSet(rows), newRowSet(rows), newRowSet(rows)
}

// addKind returns the position of the kind of a process, and adds the kind if it is new.
func (w *builder) addKind(p *topology.Process) uint32 {
	key := kindKey{w.aliases.number(p.Name), p.Template, p.Priority}
	if position, ok := w.kinds[key]; ok {
		return position
	}

	k := kind{alias: key.alias, template: p.Template, priority: p.Priority}
	if p.Template != 0 {
		k.configs = w.bound[p.Template]
	}

	position := uint32(len(w.c.kinds))
	w.c.kinds, w.kinds[key] = append(w.c.kinds, k), position
	return position
}

// groupByEnv makes the set of rows of each environment.
func (c *columns) groupByEnv() {
	for i := range c.envs {
		c.envs[i] = newRowSet(len(c.ids))
	}
	for row, s := range c.service {
		if env := c.sets[c.modules[c.services[s].module].set].env; env.Valid() {
			c.envs[env].set(uint32(row))
		}
	}
}
