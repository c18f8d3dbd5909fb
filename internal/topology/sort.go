package topology

import (
	"cmp"
	"slices"
)

// Sort puts every list in the order of its ids, the order in which states are recorded, numbered and compared.
func (b *Business) Sort() {
	slices.SortStableFunc(b.Clouds, func(x, y Cloud) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortStableFunc(b.Sets, func(x, y Set) int { return cmp.Compare(x.ID, y.ID) })

	for s := range b.Sets {
		modules := b.Sets[s].Modules
		slices.SortStableFunc(modules, func(x, y Module) int { return cmp.Compare(x.ID, y.ID) })
		for m := range modules {
			services := modules[m].Instances
			slices.SortStableFunc(services, func(x, y ServiceInstance) int { return cmp.Compare(x.ID, y.ID) })
			for i := range services {
				slices.SortStableFunc(services[i].Processes, func(x, y Process) int { return cmp.Compare(x.ID, y.ID) })
			}
		}
	}

	slices.SortStableFunc(b.Templates, func(x, y ConfigTemplate) int { return cmp.Compare(x.ID, y.ID) })

	for t := range b.Templates {
		slices.Sort(b.Templates[t].Templates)
		slices.Sort(b.Templates[t].Processes)
	}
}

// spot is a process with all that it stands in.
type spot struct {
	set     *Set
	module  *Module
	service *ServiceInstance
	process *Process
	at      place
}

// each visits every process in the order of the lists.
func (b *Business) each(visit func(spot)) {
	for s := range b.Sets {
		set := &b.Sets[s]
		for m := range set.Modules {
			module := &set.Modules[m]
			for i := range module.Instances {
				service := &module.Instances[i]
				for p := range service.Processes {
					visit(spot{set, module, service, &service.Processes[p], place{s, m, i, p}})
				}
			}
		}
	}
}
