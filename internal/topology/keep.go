package topology

import (
	"fmt"
	"slices"
)

// Keep copies from an older state what BlueKing CMDB does not have: the name of the business and its configuration
// templates. It leaves out bindings to processes that do not exist any more, or that have a process template now. Attributes that
// could not be read stay, too.
func (b *Business) Keep(old *Business) {
	b.Name = old.Name
	if b.AttributesUnread {
		b.keepAttributes(old)
	}
	bindable := map[int]bool{}
	b.each(func(s processAt) { bindable[s.process.ID] = s.process.Template == 0 })
	b.Templates = slices.Clone(old.Templates)
	for i := range b.Templates {
		t := &b.Templates[i]
		t.Templates = slices.Clone(t.Templates)
		t.Processes = slices.DeleteFunc(slices.Clone(t.Processes), func(id int) bool { return !bindable[id] })
		if len(t.Processes) == 0 {
			t.Processes = nil
		}
	}
}

// keepAttributes copies the attributes of sets, modules and hosts from an older state.
func (b *Business) keepAttributes(old *Business) {
	sets, modules, hosts := map[int]Extra{}, map[int]Extra{}, map[Host]Extra{}
	for i := range old.Sets {
		sets[old.Sets[i].ID] = old.Sets[i].Attributes
		for _, m := range old.Sets[i].Modules {
			modules[m.ID] = m.Attributes
		}
	}
	old.eachService(func(s *ServiceInstance, _ docPath) { hosts[s.Host] = s.HostAttributes })

	for i := range b.Sets {
		set := &b.Sets[i]
		set.Attributes = sets[set.ID]
		for j := range set.Modules {
			set.Modules[j].Attributes = modules[set.Modules[j].ID]
		}
	}
	b.eachService(func(s *ServiceInstance, _ docPath) { s.HostAttributes = hosts[s.Host] })
}

// maxLeft bounds what is listed of the things that could not be taken over.
const maxLeft = 1000

// AddLeft adds sentences to Left, each once and not too many.
func (b *Business) AddLeft(lines ...string) {
	const more = "more than this could not be taken over"
	for _, line := range lines {
		switch n := len(b.Left); {
		case slices.Contains(b.Left, line):
		case n < maxLeft-1:
			b.Left = append(b.Left, line)
		case n == maxLeft-1:
			b.Left = append(b.Left, more)
			return
		default:
			return
		}
	}
}

// KeepProcesses puts processes of an older state back as they were, in their former places, and returns a sentence for
// each: what an agent still supervises does not leave a business only because its source has changed. A process that has
// the alias of one of them on its host is left out.
func (b *Business) KeepProcesses(old *Business, ids map[int]bool) (left []string) {
	// Find them, and the service instances that are on another host now: such a one stays as a whole.
	k := keeping{b: b, ids: map[int]bool{}, places: map[int][3]int{}}
	b.eachService(func(s *ServiceInstance, at docPath) { k.places[s.ID] = [3]int{at[0], at[1], at[2]} })
	var kept []processAt
	old.each(func(s processAt) {
		moved := k.moved(s.service)
		if !ids[s.process.ID] && !(moved && slices.ContainsFunc(s.service.Processes, func(p Process) bool { return ids[p.ID] })) {
			return
		}
		kept, k.ids[s.process.ID] = append(kept, s), true
		if ids[s.process.ID] {
			left = append(left, fmt.Sprintf("process %d stays as it was: it is managed, and its source has removed it or changed its "+
				"name, its host or its number of instances. Stop it or stop supervising it, then read the business again (%s)",
				s.process.ID, dotted(s.set.Name, s.module.Name, s.service.Name, s.process.Name)))
		}
	})

	// Put them back.
	b.drop(k.ids)
	for _, s := range kept {
		left = append(left, k.put(s)...)
	}
	b.keepClouds(old, kept)
	b.Sort()
	return append(left, b.DropClashes(k.ids)...)
}

// keeping is a KeepProcesses under way.
type keeping struct {
	b      *Business
	ids    map[int]bool   // what is kept
	places map[int][3]int // of service instances: their set, module and place
}

// service is a service instance of the new state, nil if it has none with this id.
func (k *keeping) service(id int) *ServiceInstance {
	at, found := k.places[id]
	if !found {
		return nil
	}
	return &k.b.Sets[at[0]].Modules[at[1]].Instances[at[2]]
}

// moved reports whether a service instance of the older state is on another host in the new one.
func (k *keeping) moved(old *ServiceInstance) bool {
	now := k.service(old.ID)
	return now != nil && !sameHost(now.Host, old.Host)
}

// sameHost reports whether two states of a service instance are on the same host, by their addresses or else their agents.
func sameHost(a, b Host) bool {
	if a.Addr().IP.IsValid() && b.Addr().IP.IsValid() {
		return a.Addr() == b.Addr()
	}
	return a.Agent == b.Agent
}

// put puts a process of the older state into the new one, and returns a sentence for each process that has no place then.
func (k *keeping) put(s processAt) (left []string) {
	now := k.service(s.service.ID)
	if now == nil {
		now = k.add(s)
	}
	if !sameHost(now.Host, s.service.Host) {
		for _, p := range now.Processes {
			left = append(left, fmt.Sprintf("process %d is left out: its service instance %d stays on its former host %s", p.ID,
				now.ID, s.service.Host))
		}
		now.Host, now.Processes = s.service.Host, nil
	}
	now.Processes = append(now.Processes, *s.process)
	return left
}

// add adds an empty copy of the service instance of a process to the new state, with its module and set if they are not
// there any more.
func (k *keeping) add(s processAt) *ServiceInstance {
	set := slices.IndexFunc(k.b.Sets, func(x Set) bool { return x.ID == s.set.ID })
	module := -1
	for i := range k.b.Sets { // a module may be in another set now
		if m := slices.IndexFunc(k.b.Sets[i].Modules, func(x Module) bool { return x.ID == s.module.ID }); m >= 0 {
			set, module = i, m
		}
	}

	if set < 0 {
		set = len(k.b.Sets)
		k.b.Sets = append(k.b.Sets, Set{ID: s.set.ID, Name: s.set.Name, Env: s.set.Env})
	}
	modules := &k.b.Sets[set].Modules
	if module < 0 {
		module = len(*modules)
		*modules = append(*modules, Module{ID: s.module.ID, Name: s.module.Name, ServiceTemplate: s.module.ServiceTemplate})
	}
	instances := &(*modules)[module].Instances
	k.places[s.service.ID] = [3]int{set, module, len(*instances)}
	*instances = append(*instances, ServiceInstance{ID: s.service.ID, Name: s.service.Name, Host: s.service.Host})
	return &(*instances)[len(*instances)-1]
}

// keepClouds adds the cloud areas of processes that were put back.
func (b *Business) keepClouds(old *Business, kept []processAt) {
	for _, s := range kept {
		cloud := s.service.Host.Cloud
		is := func(c Cloud) bool { return c.ID == cloud }
		if i := slices.IndexFunc(old.Clouds, is); i >= 0 && !slices.ContainsFunc(b.Clouds, is) {
			b.Clouds = append(b.Clouds, old.Clouds[i])
		}
	}
}
