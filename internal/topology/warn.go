package topology

import "context"

// maxUnrenderable bounds the processes that Unrenderable names.
const maxUnrenderable = 20

// Services lists the service instances of a business.
func (b *Business) Services() (list []*ServiceInstance) {
	for s := range b.Sets {
		for m := range b.Sets[s].Modules {
			services := b.Sets[s].Modules[m].Instances
			for i := range services {
				list = append(list, &services[i])
			}
		}
	}
	return list
}

// Unrenderable says which processes have commands or paths that cannot be rendered for their first instance: an operation on them
// would fail. Each error names the process and the attribute. A business may have very many processes, so each template gets few steps.
func (b *Business) Unrenderable(ctx context.Context) (faults []error) {
	d := Definer{steps: 2000}
	b.each(func(p processAt) {
		if len(faults) == maxUnrenderable {
			return
		}
		naming := Naming{SetName: p.set.Name, ModuleName: p.module.Name, Alias: p.process.Name, Local: 1, Inst: 1}
		if _, err := d.Define(ctx, p.process, naming); err != nil {
			faults = append(faults, err)
		}
	})
	return faults
}
