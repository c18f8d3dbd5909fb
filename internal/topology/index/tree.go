package index

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// Counts are numbers of processes, in total and by state. Hosted is how many are supervised.
type Counts struct {
	Processes    int
	Running      int
	Stopped      int
	Unregistered int
	Hosted       int
}

func (n *Counts) add(o Counts) {
	n.Processes += o.Processes
	n.Running += o.Running
	n.Stopped += o.Stopped
	n.Unregistered += o.Unregistered
	n.Hosted += o.Hosted
}

// SetCount is a set with the processes in it.
type SetCount struct {
	ID   int
	Name string
	Env  topology.Env
	Counts
	Modules []ModuleCount // by id
}

// ModuleCount is a module with the processes in it.
type ModuleCount struct {
	ID              int
	Name            string
	ServiceTemplate int // 0: none
	Services        int // service instances
	Counts
}

// Tree lists the sets of a business in an environment, by id; EnvAny means all environments. It does not count what
// is on hosts that are not visible, and leaves out modules and sets that have nothing else. If visible is nil, all
// hosts are visible and nothing is left out.
func (x *Index) Tree(biz int, env topology.Env, visible func(h *topology.Host) bool) []SetCount {
	c := x.business(biz)
	if c == nil {
		return nil
	}

	shown := c.visibleHosts(visible)

	c.mu.RLock()
	defer c.mu.RUnlock()
	var tree []SetCount
	for i := range c.sets {
		s := &c.sets[i]
		if env != topology.EnvAny && s.env != env {
			continue
		}

		set := SetCount{ID: s.id, Name: s.name, Env: s.env,
			Modules: make([]ModuleCount, 0, s.modules.to-s.modules.from)}
		for _, m := range c.modules[s.modules.from:s.modules.to] {
			services, n := c.countRows(m.services, shown)
			if services == 0 && shown != nil {
				continue
			}
			set.add(n)
			set.Modules = append(set.Modules, ModuleCount{ID: m.id, Name: c.moduleNames[m.name],
				ServiceTemplate: m.template, Services: services, Counts: n})
		}

		if len(set.Modules) > 0 || shown == nil {
			tree = append(tree, set)
		}
	}

	return tree
}

// visibleHosts returns for each host whether it is visible, or nil when all are.
func (c *columns) visibleHosts(visible func(h *topology.Host) bool) []bool {
	if visible == nil {
		return nil
	}
	shown := make([]bool, len(c.hosts))
	for i := range c.hosts {
		shown[i] = visible(&c.hosts[i].Host)
	}
	return shown
}

// countRows counts the services on visible hosts, and their rows.
func (c *columns) countRows(of span, shown []bool) (services int, n Counts) {
	if shown == nil {
		return int(of.to - of.from), c.countSome(of)
	}
	for s := of.from; s < of.to; s++ {
		if shown[c.services[s].host] {
			services++
			n.add(c.countSome(span{s, s + 1}))
		}
	}
	return services, n
}

// countSome counts the rows of services.
func (c *columns) countSome(services span) Counts {
	var n Counts
	for _, row := range c.serviceRows.items[c.serviceRows.start[services.from]:c.serviceRows.start[services.to]] {
		state, hosted := c.stateOf(row)
		n.Processes++
		switch state {
		case gozzard.StateRunning:
			n.Running++
		case gozzard.StateStopped:
			n.Stopped++
		default:
			n.Unregistered++
		}
		if hosted {
			n.Hosted++
		}
	}

	return n
}
