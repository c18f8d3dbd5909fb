package control

import (
	"context"
	"fmt"
	"math"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// namedHosted bounds how many supervised instances an answer names.
const namedHosted = 20

// leaving is an instance that a change removes from its business while the fleet knows it.
type leaving struct {
	id      gozzard.ProcID
	process int    // by its id in the business
	name    string // of its process, dotted
	host    string
	hosted  bool // supervised, as its agent reports or the record has it
}

// leavingRegistered finds the instances that are registered and not in the business after a change. Service instances
// that do not change have none: an alias is unique on its host.
func (t *businesses) leavingRegistered(ctx context.Context, was *topology.Business,
	c *topology.Change) ([]leaving, error) {
	if was == nil || len(c.PutServices)+len(c.DropServices) == 0 {
		return nil, nil
	}

	// What changes.
	touched := make(map[int]struct{}, len(c.PutServices)+len(c.DropServices))
	for _, id := range c.DropServices {
		touched[id] = struct{}{}
	}

	stay := make(map[gozzard.ProcID]struct{})
	for i := range c.PutServices {
		s := &c.PutServices[i].Service
		touched[s.ID] = struct{}{}
		t.eachInstance(c.Biz, s, func(id gozzard.ProcID, _ *topology.Process) { stay[id] = struct{}{} })
	}

	// What is there now and not afterwards.
	var list []leaving
	for i := range was.Sets {
		set := &was.Sets[i]
		for j := range set.Modules {
			m := &set.Modules[j]
			for k := range m.Instances {
				s := &m.Instances[k]
				if _, ok := touched[s.ID]; !ok {
					continue
				}
				t.eachInstance(c.Biz, s, func(id gozzard.ProcID, proc *topology.Process) {
					if _, ok := stay[id]; !ok {
						list = append(list, leaving{id: id, process: proc.ID, host: s.Host.Addr().String(),
							name: fmt.Sprintf("%s.%s.%s.%s.%d", set.Name, m.Name, s.Name, proc.Name, proc.ID)})
					}
				})
			}
		}
	}

	return t.onlyRegistered(ctx, list)
}

// strays finds the processes that agents have for a business although they are not in it, except those that leave it
// now. A process that was registered by hand in the namespace of a business has no label of an instance and is not
// among them.
func (t *businesses) strays(b *topology.Business, leave []leaving) (list []leaving) {
	known := make(map[gozzard.ProcID]struct{}, len(leave))
	for i := range leave {
		known[leave[i].id] = struct{}{}
	}

	for i := range b.Sets {
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			for k := range m.Instances {
				t.eachInstance(b.ID, &m.Instances[k], func(id gozzard.ProcID,
					_ *topology.Process) {
					known[id] = struct{}{}
				})
			}
		}
	}

	_, rows := t.o.Live.Page(gozzard.Everything(), topology.Namespace(b.ID), 0, math.MaxInt)
	for i := range rows {
		r := &rows[i]
		id := gozzard.ProcID{Agent: r.Agent, Key: r.Status.Key}
		process := r.Status.Labels[processLabel]
		if _, ok := known[id]; ok || process == "" {
			continue
		}
		list = append(list, leaving{id: id, name: r.Status.Labels[processNameLabel] + "." + process,
			host: r.Addr.String(), hosted: r.Status.Hosted})
	}

	return list
}

// eachInstance calls f for every instance of a service on a host that the fleet knows: on others nothing is registered.
func (t *businesses) eachInstance(biz int, s *topology.ServiceInstance,
	f func(id gozzard.ProcID, proc *topology.Process)) {
	h, known := t.o.Live.Host(s.Host.Agent)
	if !known {
		if h, known = t.o.Live.HostByAddr(s.Host.Addr()); !known {
			return
		}
	}
	for i := range s.Processes {
		proc := &s.Processes[i]
		for local := 1; local <= proc.Count(); local++ {
			f(gozzard.ProcID{Agent: h.Info.Agent, Key: topology.Key(biz, proc.Name, local)}, proc)
		}
	}
}

// onlyRegistered filters out those that neither an agent nor the record has.
func (t *businesses) onlyRegistered(ctx context.Context, list []leaving) ([]leaving, error) {
	ids := make([]gozzard.ProcID, len(list))
	for i := range list {
		ids[i] = list[i].id
	}

	recs, err := recorded(ctx, t.o.Store, ids)
	if err != nil {
		return nil, err
	}

	var registered []leaving
	for _, l := range list {
		rec, recorded := recs[l.id]
		row, reported := t.o.Live.Get(l.id.Agent, l.id.Key)
		if recorded || reported {
			l.hosted = rec.Hosted || row.Status.Hosted
			registered = append(registered, l)
		}
	}

	return registered, nil
}

// hostedProcesses are the processes of a business with supervised instances that leave.
func hostedProcesses(list []leaving) map[int]bool {
	ids := map[int]bool{}
	for i := range list {
		if list[i].hosted && list[i].process > 0 {
			ids[list[i].process] = true
		}
	}
	return ids
}

// nameHosted counts the supervised ones and names the first.
func nameHosted(list []leaving) (n int, named []gozzard.Fault) {
	for i := range list {
		l := &list[i]
		if !l.hosted {
			continue
		}
		if n++; n <= namedHosted {
			named = append(named, gozzard.Fault{Path: l.name,
				Text: fmt.Sprintf("%s is managed on %s", l.id.Key, l.host)})
		}
	}
	return n, named
}
