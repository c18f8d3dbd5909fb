package topology

import (
	"cmp"
	"slices"
)

// Sort sorts every list by id. The record, Number and Compare need that order.
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

// processAt is a process with its set, module and service instance, and its path in a document.
type processAt struct {
	set     *Set
	module  *Module
	service *ServiceInstance
	process *Process
	at      docPath
}

// each calls visit for every process, in the order of the lists.
func (b *Business) each(visit func(processAt)) {
	for s := range b.Sets {
		set := &b.Sets[s]
		for m := range set.Modules {
			module := &set.Modules[m]
			for i := range module.Instances {
				service := &module.Instances[i]
				for p := range service.Processes {
					visit(processAt{set, module, service, &service.Processes[p], docPath{s, m, i, p}})
				}
			}
		}
	}
}
