package control

import (
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// assignments are the hosts of every business. A grant by business reaches these hosts and no others. Its lock is taken
// while the lock of the live index is held, so it calls nothing.
type assignments struct {
	mu    sync.RWMutex
	hosts map[int]*hostSet
}

// hostSet are the hosts of one business, by what its source names them with.
type hostSet struct {
	agents map[gozzard.AgentID]struct{}
	addrs  map[gozzard.HostAddr]struct{}
}

// hostsOf collects the hosts of a business; nil has none.
func hostsOf(b *topology.Business) *hostSet {
	s := &hostSet{agents: map[gozzard.AgentID]struct{}{}, addrs: map[gozzard.HostAddr]struct{}{}}
	eachHost(b, func(h *topology.Host, _ *topology.ServiceInstance) {
		if h.Agent != "" {
			s.agents[h.Agent] = struct{}{}
		}
		for _, a := range written(h) {
			s.addrs[a] = struct{}{}
		}
	})
	return s
}

// eachHost calls f for the host of every service instance of a business.
func eachHost(b *topology.Business, f func(h *topology.Host, s *topology.ServiceInstance)) {
	if b == nil {
		return
	}
	for i := range b.Sets {
		for j := range b.Sets[i].Modules {
			m := &b.Sets[i].Modules[j]
			for k := range m.Instances {
				f(&m.Instances[k].Host, &m.Instances[k])
			}
		}
	}
}

// written are the addresses that a document has for a host.
func written(h *topology.Host) (addrs []gozzard.HostAddr) {
	for _, a := range []gozzard.HostAddr{{Cloud: h.Cloud, IP: h.IP}, {Cloud: h.Cloud, IP: h.IPv6}} {
		if a.IP.IsValid() {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

func (s *hostSet) has(h gozzard.HostRef) bool {
	if _, ok := s.agents[h.Agent]; ok && h.Agent != "" {
		return true
	}
	for _, a := range h.Addrs {
		if _, ok := s.addrs[a]; ok {
			return true
		}
	}
	return false
}

// hasAll reports whether the set has everything by which a document names a host.
func (s *hostSet) hasAll(h *topology.Host) bool {
	if _, ok := s.agents[h.Agent]; !ok && h.Agent != "" {
		return false
	}
	for _, a := range written(h) {
		if _, ok := s.addrs[a]; !ok {
			return false
		}
	}
	return true
}

func (x *assignments) replace(b *topology.Business) {
	set := hostsOf(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.hosts == nil {
		x.hosts = map[int]*hostSet{}
	}
	x.hosts[b.ID] = set
}

// Assigned reports whether a topology document or the CMDB assigns a host to a business: by its agent, or by one of its
// addresses.
func (t *businesses) Assigned(biz int, h gozzard.HostRef) bool {
	t.assignments.mu.RLock()
	defer t.assignments.mu.RUnlock()
	set := t.assignments.hosts[biz]
	return set != nil && set.has(h)
}

// rejectForeign rejects a change that brings a host into a business, or an account into its processes, without a right
// to that host or account. What the business has already stays allowed.
func (t *businesses) rejectForeign(req *record.ApplyRequest, was *topology.Business) error {
	rights, b := req.Caller.Rights, req.Business
	if rights.All() {
		return nil
	}

	var err error
	old, defined := hostsOf(was), processesOf(was)
	eachHost(b, func(h *topology.Host, s *topology.ServiceInstance) {
		if err == nil && !old.hasAll(h) {
			err = t.rejectHost(req, h)
		}
		for i := range s.Processes {
			p := &s.Processes[i]
			before, known := defined[p.ID]
			if err != nil || known && before == *p {
				continue
			}
			for _, account := range accountsOf(p, &before, known) {
				if !rights.MayRunAs(b.ID, account) {
					err = gozzard.Errorf(gozzard.ErrAppForbidden,
						req.Caller.Form("app %s may not change process %d (%s) of business %d: its grants do not include the account %s",
							"user %s may not change process %d (%s) of business %d: its grants do not include the account %s"),
						req.Caller.Named(), p.ID, p.Name, b.ID, gozzard.CanonicalAccount(account))
				}
			}
		}
	})

	return err
}

// accountsOf are the accounts of a process: the new one, and the one before.
func accountsOf(p, before *topology.Process, known bool) []string {
	if known {
		return []string{p.User, before.User}
	}
	return []string{p.User}
}

// processesOf are the processes of a business by their ids.
func processesOf(b *topology.Business) map[int]topology.Process {
	list := map[int]topology.Process{}
	eachHost(b, func(_ *topology.Host, s *topology.ServiceInstance) {
		for i := range s.Processes {
			list[s.Processes[i].ID] = s.Processes[i]
		}
	})
	return list
}

// rejectHost rejects a host that is new in a business unless the caller has a right to everything that its names may
// stand for: the host of that agent, the host that has that address now, and the addresses as they are written. An
// agent that is not known yet may come from any host.
func (t *businesses) rejectHost(req *record.ApplyRequest, h *topology.Host) error {
	refs := []gozzard.HostRef{}
	if h.Agent != "" {
		known, ok := t.o.Live.Host(h.Agent)
		if !ok {
			known.Info = gozzard.HostInfo{Agent: h.Agent}
		}
		refs = append(refs, known.Info.Ref())
	}

	for _, a := range written(h) {
		refs = append(refs, gozzard.HostRef{Addrs: []gozzard.HostAddr{a}})
		if known, ok := t.o.Live.HostByAddr(a); ok {
			refs = append(refs, known.Info.Ref())
		}
	}

	for _, ref := range refs {
		if !req.Caller.Rights.MayAssign(req.Business.ID, ref) {
			return gozzard.Errorf(gozzard.ErrAppForbidden,
				req.Caller.Form("app %s may not put host %s into business %d: this needs the role admin on that host, by --net, --cloud or on the whole fleet",
					"user %s may not put host %s into business %d: this needs the role admin on that host, by --net, --cloud or on the whole fleet"),
				req.Caller.Named(), hostName(h), req.Business.ID)
		}
	}
	return nil
}

// hostName is a host as the document has it.
func hostName(h *topology.Host) string {
	if a := h.Addr(); a.IP.IsValid() {
		return a.String()
	}
	return "of agent " + string(h.Agent)
}
