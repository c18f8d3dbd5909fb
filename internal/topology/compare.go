package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Compare returns the difference between two states of a business: as a Change for the record, and as a Plan for
// people. Both states are sorted and have no faults, and their numbers are sorted by process id. If old is nil, the
// business is new. The caller sets Base of the change.
func Compare(old *Business, oldN []Numbers, new *Business, newN []Numbers) (Change, Plan) {
	known := old != nil
	if !known {
		old = &Business{ID: new.ID}
	}

	c := &comparison{
		was:    flatten(old, oldN),
		is:     flatten(new, newN),
		change: Change{Biz: new.ID, Name: new.Name, Clouds: new.Clouds, Templates: new.Templates, Left: new.Left},
	}
	c.business(known, old, new)
	c.clouds(old.Clouds, new.Clouds)
	c.sets()
	c.modules()
	c.services()
	c.processes()
	c.templates(old.Templates, new.Templates)
	c.numbers()
	return c.change, c.plan
}

// comparison is a Compare under way.
type comparison struct {
	was, is *flat
	change  Change
	plan    Plan
}

// flat is the contents of a business by their ids.
type flat struct {
	sets      map[int]*Set
	modules   map[int]inSet
	services  map[int]inModule
	processes map[int]inService
	numbers   map[int]Numbers
}

type inSet struct {
	*Module
	set *Set
}

type inModule struct {
	*ServiceInstance
	module inSet
}

type inService struct {
	*Process
	service inModule
}

func flatten(b *Business, n []Numbers) *flat {
	f := &flat{
		sets: map[int]*Set{}, modules: map[int]inSet{}, services: map[int]inModule{},
		processes: map[int]inService{}, numbers: map[int]Numbers{},
	}
	for s := range b.Sets {
		set := &b.Sets[s]
		f.sets[set.ID] = set
		for m := range set.Modules {
			module := inSet{&set.Modules[m], set}
			f.modules[module.ID] = module
			for i := range module.Instances {
				service := inModule{&module.Instances[i], module}
				f.services[service.ID] = service
				for p := range service.Processes {
					f.processes[service.Processes[p].ID] = inService{&service.Processes[p], service}
				}
			}
		}
	}

	for _, one := range n {
		f.numbers[one.Process] = one
	}

	return f
}

func (m inSet) dotted() string     { return dotted(m.set.Name, m.Name) }
func (s inModule) dotted() string  { return dotted(s.module.dotted(), s.Name) }
func (p inService) dotted() string { return dotted(p.service.dotted(), p.Name) }

func dotted(parts ...string) string { return strings.Join(parts, ".") }

// eachID visits the ids of two states in order. had and has say whether the old and the new state have the id.
func eachID[T any](was, is map[int]T, visit func(id int, was, is T, had, has bool)) {
	ids := slices.AppendSeq(make([]int, 0, len(is)), maps.Keys(is))
	for id := range was {
		if _, stays := is[id]; !stays {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		w, had := was[id]
		i, has := is[id]
		visit(id, w, i, had, has)
	}
}

// record adds an item to the plan, if it differs. It reports whether the item is new or changed.
func (c *comparison) record(item Item, had, has bool) bool {
	switch {
	case !had:
		c.plan.Added = append(c.plan.Added, item)
	case !has:
		c.plan.Removed = append(c.plan.Removed, item)
	case len(item.Fields) > 0:
		c.plan.Changed = append(c.plan.Changed, item)
	default:
		return false
	}
	return has
}

// fields collects changed attributes, in the form "priority: 1 -> 2".
type fields []string

func (f *fields) number(key string, was, is int) {
	if was != is {
		*f = append(*f, fmt.Sprintf("%s: %d -> %d", key, was, is))
	}
}

func (f *fields) text(key, was, is string) {
	if was != is {
		*f = append(*f, key+": "+quote(was)+" -> "+quote(is))
	}
}

func (f *fields) list(key string, was, is []int) {
	if !slices.Equal(was, is) {
		*f = append(*f, fmt.Sprintf("%s: %v -> %v", key, was, is))
	}
}

// quote puts a text into quotes if it would not be clear otherwise.
func quote(s string) string {
	if s == "" || strings.Contains(s, "->") || strings.TrimSpace(s) != s || !gozzard.IsPlainLine(s) {
		return strconv.Quote(s)
	}
	return s
}

func (c *comparison) business(known bool, old, new *Business) {
	var f fields
	f.text("name", old.Name, new.Name)
	item := Item{Kind: "business", ID: new.ID, Name: new.Name}
	if known {
		item.Fields = f
	}
	c.record(item, known, true)
}

func (c *comparison) clouds(old, new []Cloud) {
	eachID(mapByID(old, func(x Cloud) int { return x.ID }), mapByID(new, func(x Cloud) int { return x.ID }),
		func(id int, was, is Cloud, had, has bool) {
			var f fields
			if had && has {
				f.text("name", was.Name, is.Name)
			}
			c.record(Item{Kind: "cloud", ID: id, Name: cmp.Or(is.Name, was.Name), Fields: f}, had, has)
		})
}

func (c *comparison) sets() {
	eachID(c.was.sets, c.is.sets, func(id int, was, is *Set, had, has bool) {
		item := Item{Kind: "set", ID: id, Name: newest(was, is, has).Name}
		if had && has {
			f := (*fields)(&item.Fields)
			f.text("name", was.Name, is.Name)
			f.number("env", int(was.Env), int(is.Env))
			f.extra("attributes", was.Attributes, is.Attributes)
		}
		if c.record(item, had, has) {
			c.change.PutSets = append(c.change.PutSets, Set{ID: id, Name: is.Name, Env: is.Env, Attributes: is.Attributes})
		}
		if !has {
			c.change.DropSets = append(c.change.DropSets, id)
		}
	})
}

func (c *comparison) modules() {
	eachID(c.was.modules, c.is.modules, func(id int, was, is inSet, had, has bool) {
		item := Item{Kind: "module", ID: id, Name: newest(was, is, has).dotted()}

		if had && has {
			f := (*fields)(&item.Fields)
			f.text("name", was.Name, is.Name)
			f.number("service_template_id", was.ServiceTemplate, is.ServiceTemplate)
			f.number("set", was.set.ID, is.set.ID)
			f.extra("attributes", was.Attributes, is.Attributes)
		}

		if c.record(item, had, has) {
			c.change.PutModules = append(c.change.PutModules,
				PlacedModule{Set: is.set.ID,
					Module: Module{ID: id, Name: is.Name, ServiceTemplate: is.ServiceTemplate, Attributes: is.Attributes}})
		}

		if !has {
			c.change.DropModules = append(c.change.DropModules, id)
		}
	})
}

func (c *comparison) services() {
	eachID(c.was.services, c.is.services, func(id int, was, is inModule, had, has bool) {
		item := Item{Kind: "service instance", ID: id, Name: newest(was, is, has).dotted()}

		if had && has {
			f := (*fields)(&item.Fields)
			f.text("name", was.Name, is.Name)
			f.number("module", was.module.ID, is.module.ID)
			f.host(was.Host, is.Host)
			f.extra("host.attributes", was.HostAttributes, is.HostAttributes)
		}

		// The record stores processes inside their service instance. The plan lists them separately: see processes.
		if put := c.record(item, had, has); put || had && has && !slices.Equal(was.Processes, is.Processes) {
			c.change.PutServices = append(c.change.PutServices,
				PlacedService{Module: is.module.ID, Service: *is.ServiceInstance})
		}

		if !has {
			c.change.DropServices = append(c.change.DropServices, id)
		}
	})
}

func (f *fields) host(was, is Host) {
	f.number("host.cloud", was.Cloud, is.Cloud)
	f.text("host.ip", addrText(was.IP), addrText(is.IP))
	f.text("host.ipv6", addrText(was.IPv6), addrText(is.IPv6))
	f.text("host.agent_id", string(was.Agent), string(is.Agent))
	f.number("host.id", was.ID, is.ID)
}

func (c *comparison) processes() {
	eachID(c.was.processes, c.is.processes, func(id int, was, is inService, had, has bool) {
		item := Item{Kind: "process", ID: id, Name: newest(was, is, has).dotted()}
		if had && has {
			f := (*fields)(&item.Fields)
			if *was.Process != *is.Process {
				f.process(was.Process, is.Process)
			}
			f.number("service instance", was.service.ID, is.service.ID)
			f.number("inst_id", c.was.numbers[id].Inst(1), c.is.numbers[id].Inst(1))
		}
		c.record(item, had, has)
	})
}

// process compares all attributes of a process.
func (f *fields) process(was, is *Process) {
	before, after := was.attributes(), is.attributes()
	for i, a := range before {
		if a.text != nil {
			f.text(a.key, *a.text, *after[i].text)
		} else {
			f.number(a.key, *a.number, *after[i].number)
		}
	}
	old, now := was.native(), is.native()
	for _, key := range slices.Sorted(maps.Keys(old)) {
		f.text(key, string(old[key]), string(now[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, had := old[key]; !had {
			f.text(key, "", string(now[key]))
		}
	}
}

// extra compares the attributes for templates.
func (f *fields) extra(key string, was, is Extra) {
	if was == is {
		return
	}
	old, now := was.Texts(), is.Texts()
	both := maps.Clone(old)
	maps.Copy(both, now)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		was, had := old[name]
		is, has := now[name]
		switch {
		case !had:
			*f = append(*f, key+"."+name+": none -> "+quote(is))
		case !has:
			*f = append(*f, key+"."+name+": "+quote(was)+" -> none")
		default:
			f.text(key+"."+name, was, is)
		}
	}
}

func (c *comparison) templates(old, new []ConfigTemplate) {
	byID := func(t ConfigTemplate) int { return t.ID }
	eachID(mapByID(old, byID), mapByID(new, byID), func(id int, was, is ConfigTemplate, had, has bool) {
		item := Item{Kind: "config template", ID: id, Name: newest(was, is, has).Name}

		if had && has {
			f := (*fields)(&item.Fields)
			f.text("name", was.Name, is.Name)
			f.text("file_name", was.FileName, is.FileName)
			f.text("abs_path", was.Path, is.Path)
			f.text("owner", was.Owner, is.Owner)
			f.text("group", was.Group, is.Group)
			f.text("mode", was.Mode, is.Mode)
			f.list("bind.templates", was.Templates, is.Templates)
			f.list("bind.processes", was.Processes, is.Processes)
		}

		c.record(item, had, has)
	})
}

func (c *comparison) numbers() {
	eachID(c.was.numbers, c.is.numbers, func(id int, was, is Numbers, had, has bool) {
		switch {
		case !has:
			c.change.DropNumbers = append(c.change.DropNumbers, id)
		case !had || was != is:
			c.change.PutNumbers = append(c.change.PutNumbers, is)
		}
	})
}

// newest is the new value if there is one, otherwise the old value.
func newest[T any](was, is T, has bool) T {
	if has {
		return is
	}
	return was
}

func mapByID[T any](list []T, id func(T) int) map[int]T {
	m := make(map[int]T, len(list))
	for _, x := range list {
		m[id(x)] = x
	}
	return m
}
