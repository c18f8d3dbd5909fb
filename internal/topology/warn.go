package topology

import "context"

const (
	maxUnrenderable = 20     // processes that Unrenderable names
	maxTried        = 10_000 // processes that it tries: their caller waits
)

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
// would fail. Each error names the process and the attribute. A business may have very many processes, so each template gets few steps,
// and only the first processes are tried.
func (b *Business) Unrenderable(ctx context.Context) (faults []error) {
	d, tried := Definer{steps: 2000}, 0
	b.each(func(p processAt) {
		if len(faults) == maxUnrenderable || tried == maxTried {
			return
		}
		tried++
		naming := Naming{SetName: p.set.Name, ModuleName: p.module.Name, Alias: p.process.Name, Local: 1, Inst: 1}
		if _, err := d.Define(ctx, p.process, naming); err != nil {
			faults = append(faults, err)
		}
	})
	return faults
}
