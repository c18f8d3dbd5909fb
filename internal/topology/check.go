package topology

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Limits of a business.
const (
	maxID        = 1<<31 - 1 // BlueKing's clients store ids in 32 bits
	maxCount     = 10_000    // instances of one process
	maxInstances = 4_000_000 // of a business
)

// docPath is the path of a process in a document: the positions of its set, module, service instance and process in
// their lists. The path of a service instance, module or set ends with -1.
type docPath [4]int

// String is the path as faults show it, such as sets[0].modules[1].
func (p docPath) String() string {
	text := ""
	for i, list := range [...]string{"sets", "modules", "instances", "processes"} {
		if p[i] < 0 {
			break
		}
		if i > 0 {
			text += "."
		}
		text += list + "[" + strconv.Itoa(p[i]) + "]"
	}
	return text
}

// checker collects the faults of a business.
type checker struct {
	faults []gozzard.Fault
}

func (c *checker) fault(path, format string, args ...any) {
	c.faults = append(c.faults, gozzard.Fault{Path: path, Text: fmt.Sprintf(format, args...)})
}

// Check lists all faults of a business: in ids and names, references, numbers and addresses, attributes that cannot be
// used, and processes with one alias on one host. The path of a fault is that in a document, with the positions in the
// lists as they are.
func (b *Business) Check() []gozzard.Fault {
	c := &checker{}
	c.id("biz", b.ID)
	c.name("name", b.Name)
	c.clouds(b)
	c.tree(b)
	c.templates(b)
	c.faults = append(c.faults, b.clashes()...)
	return c.faults
}

func (c *checker) id(path string, id int) {
	if id == 0 {
		c.fault(path, "required")
		return
	}
	c.number(path, id, 1, maxID)
}

func (c *checker) number(path string, n, least, most int) {
	if n < least || n > most {
		c.fault(path, "must be %d to %d, is %d", least, most, n)
	}
}

func (c *checker) name(path, name string) {
	if why := checkText(name, maxNameText); why != "" {
		c.fault(path, "%s", why)
	}
}

func (c *checker) clouds(b *Business) {
	seen := map[int]int{}
	for i, cloud := range b.Clouds {
		path := fmt.Sprintf("clouds[%d]", i)
		c.number(path+".id", cloud.ID, 0, maxID)
		if first, twice := seen[cloud.ID]; twice {
			c.fault(path+".id", "%d is already the id of clouds[%d]", cloud.ID, first)
		} else {
			seen[cloud.ID] = i
		}
		if cloud.Name != "" { // a cloud area may have no name
			c.name(path+".name", cloud.Name)
		}
	}

	if len(b.Clouds) == 0 {
		return
	}

	b.eachService(func(service *ServiceInstance, at docPath) {
		if _, known := seen[service.Host.Cloud]; !known && service.Host.Cloud >= 0 {
			c.fault(at.String()+".host.cloud", "there is no cloud area %d in clouds", service.Host.Cloud)
		}
	})
}

// ids remembers where each id was first used.
type ids map[int]docPath

// unique checks that an id is valid and was not used before.
func (c *checker) unique(seen ids, id int, at docPath) {
	first, twice := seen[id]
	switch {
	case id < 1 || id > maxID:
		c.id(at.String()+".id", id)
	case twice:
		c.fault(at.String()+".id", "%d is already the id of %s", id, first)
	default:
		seen[id] = at
	}
}

// tree checks the sets with everything in them. Paths are only made for faults: a business can have millions of
// processes.
func (c *checker) tree(b *Business) {
	sets, modules, services, processes := ids{}, ids{}, ids{}, ids{}
	instances := 0
	for s := range b.Sets {
		set, at := &b.Sets[s], docPath{s, -1, -1, -1}
		c.unique(sets, set.ID, at)
		if checkText(set.Name, maxNameText) != "" {
			c.name(at.String()+".name", set.Name)
		}
		c.env(set.Env, at)
		c.extra(set.Attributes, "set", at.String)
		for m := range set.Modules {
			module, at := &set.Modules[m], docPath{s, m, -1, -1}
			c.unique(modules, module.ID, at)
			c.module(module, at)
			for i := range module.Instances {
				service, at := &module.Instances[i], docPath{s, m, i, -1}
				c.unique(services, service.ID, at)
				c.service(service, at)
				for p := range service.Processes {
					process, at := &service.Processes[p], docPath{s, m, i, p}
					c.unique(processes, process.ID, at)
					c.process(process, set.Name, module.Name, at)
					instances += min(process.Count(), maxCount)
				}
			}
		}
	}

	if instances > maxInstances {
		c.fault("sets", "have %d process instances together, at most %d are allowed", instances, maxInstances)
	}
}

func (c *checker) env(e Env, at docPath) {
	switch {
	case e == 0:
		c.fault(at.String()+".env", "required: 1 (test), 2 (experience) or 3 (formal)")
	case !e.Valid() && e != EnvNone:
		c.fault(at.String()+".env", "must be 1 (test), 2 (experience) or 3 (formal), is %d", int(e))
	}
}

func (c *checker) module(m *Module, at docPath) {
	if checkText(m.Name, maxNameText) != "" {
		c.name(at.String()+".name", m.Name)
	}
	if m.ServiceTemplate < 0 || m.ServiceTemplate > maxID {
		c.number(at.String()+".service_template_id", m.ServiceTemplate, 0, maxID)
	}
	c.extra(m.Attributes, "module", at.String)
}

// service checks a service instance and its host.
func (c *checker) service(s *ServiceInstance, at docPath) {
	if checkText(s.Name, maxNameText) != "" {
		c.name(at.String()+".name", s.Name)
	}

	c.extra(s.HostAttributes, "host", func() string { return at.String() + ".host" })
	h := s.Host
	if h.Cloud < 0 || h.Cloud > maxID {
		c.number(at.String()+".host.cloud", h.Cloud, 0, maxID)
	}
	if h.ID < 0 || h.ID > maxID {
		c.number(at.String()+".host.id", h.ID, 0, maxID)
	}
	if h.Agent == "" && !h.IP.IsValid() && !h.IPv6.IsValid() {
		c.fault(at.String()+".host.ip", "required, or ipv6 or agent_id")
	}
	if h.IP.IsValid() && !h.IP.Is4() {
		c.fault(at.String()+".host.ip", "%q is not an IPv4 address: write it as ipv6", h.IP)
	}
	if h.IPv6.IsValid() && !h.IPv6.Is6() {
		c.fault(at.String()+".host.ipv6", "%q is not an IPv6 address", h.IPv6)
	}

	c.unicast(at, ".host.ip", h.IP)
	c.unicast(at, ".host.ipv6", h.IPv6)

	if h.Agent != "" {
		if err := h.Agent.Validate(); err != nil {
			c.fault(at.String()+".host.agent_id", "%v", err)
		}
	}
}

// unicast rejects an address that cannot be that of one host, such as a multicast address.
func (c *checker) unicast(at docPath, key string, ip netip.Addr) {
	if !ip.IsValid() {
		return
	}
	if _, err := gozzard.ParseIP(ip.String()); err != nil {
		c.fault(at.String()+key, "%v", err)
	}
}

func (c *checker) process(p *Process, set, module string, at docPath) {
	if err := p.CheckAlias(); err != nil {
		c.fault(at.String()+".name", "%v", err)
	}
	for _, f := range p.Unusable(set, module) {
		c.fault(at.String()+"."+f.Path, "%s", f.Text)
	}
}

// eachService calls visit for every service instance, in the order of the lists.
func (b *Business) eachService(visit func(*ServiceInstance, docPath)) {
	for s := range b.Sets {
		for m := range b.Sets[s].Modules {
			services := b.Sets[s].Modules[m].Instances
			for i := range services {
				visit(&services[i], docPath{s, m, i, -1})
			}
		}
	}
}
