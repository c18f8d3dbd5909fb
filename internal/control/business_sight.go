package control

import (
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// hostSight gives a func that decides which hosts of a business are visible; nil when all are. A host that the fleet
// knows is judged by its addresses there, as with every other question: the address in a document must not make its
// processes visible. The func is called once for each host.
func (t *businesses) hostSight(rights *gozzard.Rights, biz int) func(h *topology.Host) bool {
	namespace := topology.Namespace(biz)
	if rights.SeesBusinessHosts(biz) {
		return nil
	}

	space := rights.MarkSpace(namespace)
	return func(h *topology.Host) bool {
		ref := gozzard.HostRef{Agent: h.Agent, Addrs: written(h)}

		if known, ok := t.o.Live.Host(h.Agent); ok {
			ref = known.Info.Ref()
		} else if known, ok := t.o.Live.HostByAddr(h.Addr()); ok {
			ref = known.Info.Ref()
		}

		return space.Meet(rights.MarkHost(ref))
	}
}

// leaveOut removes the service instances on hosts that are not visible, and what is only about them: modules and sets
// that would be empty, templates that nothing else uses, clouds without a host.
func leaveOut(r *record.Business, visible func(h *topology.Host) bool) {
	if visible == nil {
		return
	}

	// What remains visible.
	b := &r.Business
	clouds, processes, templates := map[int]bool{}, map[int]bool{}, map[int]bool{}
	show := func(s *topology.ServiceInstance) {
		clouds[s.Host.Cloud] = true
		for i := range s.Processes {
			processes[s.Processes[i].ID], templates[s.Processes[i].Template] = true, true
		}
	}

	// Remove the service instances.
	b.Sets = slices.DeleteFunc(b.Sets, func(set topology.Set) bool { return !visibleSet(&set, visible) })
	for i := range b.Sets {
		b.Sets[i].Modules = slices.DeleteFunc(b.Sets[i].Modules,
			func(m topology.Module) bool { return !visibleModule(&m, visible) })
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			m.Instances = slices.DeleteFunc(m.Instances,
				func(s topology.ServiceInstance) bool { return !visible(&s.Host) })
			for k := range m.Instances {
				show(&m.Instances[k])
			}
		}
	}

	// Remove what is only about them.
	b.Clouds = slices.DeleteFunc(b.Clouds, func(c topology.Cloud) bool { return !clouds[c.ID] })
	for i := range b.Templates {
		t := &b.Templates[i]
		t.Processes = slices.DeleteFunc(t.Processes, func(id int) bool { return !processes[id] })
		t.Templates = slices.DeleteFunc(t.Templates, func(id int) bool { return !templates[id] })
	}

	b.Templates = slices.DeleteFunc(b.Templates, func(t topology.ConfigTemplate) bool {
		return len(t.Processes)+
			len(t.Templates) == 0
	})

	r.Numbers = slices.DeleteFunc(r.Numbers, func(n topology.Numbers) bool { return !processes[n.Process] })
}

func visibleSet(set *topology.Set, visible func(h *topology.Host) bool) bool {
	return slices.ContainsFunc(set.Modules, func(m topology.Module) bool { return visibleModule(&m, visible) })
}

func visibleModule(m *topology.Module, visible func(h *topology.Host) bool) bool {
	return slices.ContainsFunc(m.Instances, func(s topology.ServiceInstance) bool { return visible(&s.Host) })
}
