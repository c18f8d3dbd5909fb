package topology

import "github.com/gozzard/gozzard"

// Counts are numbers of processes.
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
	Env  Env
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

// Tree lists the sets of a business that are in an environment, EnvAny for all, by id.
func (x *Index) Tree(biz int, env Env) []SetCount {
	c := x.business(biz)
	if c == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var tree []SetCount
	for i := range c.sets {
		s := &c.sets[i]
		if env != EnvAny && s.env != env {
			continue
		}
		set := SetCount{ID: s.id, Name: s.name, Env: s.env, Modules: make([]ModuleCount, 0, s.modules.to-s.modules.from)}
		for _, m := range c.modules[s.modules.from:s.modules.to] {
			n := c.countRows(m.services)
			set.add(n)
			set.Modules = append(set.Modules, ModuleCount{
				ID: m.id, Name: c.moduleNames[m.name], ServiceTemplate: m.template, Services: int(m.services.to - m.services.from), Counts: n,
			})
		}
		tree = append(tree, set)
	}
	return tree
}

func (c *columns) countRows(services span) Counts {
	var n Counts
	for _, row := range c.serviceRows.items[c.serviceRows.start[services.from]:c.serviceRows.start[services.to]] {
		state, hosted := c.together(row)
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
