package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
)

// onHost is an alias on a host. The host is named by its agent or by an address.
type onHost struct {
	agent gozzard.AgentID
	addr  gozzard.HostAddr
	alias string
}

// clashes lists processes with the same alias on the same host, in any modules: they would have the same key.
func (b *Business) clashes() []gozzard.Fault {
	var faults []gozzard.Fault
	known := newAliases()
	b.each(func(s processAt) {
		if first := known.find(s); first != nil {
			faults = append(faults, gozzard.Fault{Path: s.at.String() + ".name", Text: clashText(s, *first)})
		}
		known.put(s)
	})
	return faults
}

// aliases are processes by their aliases on their hosts.
//
// Two service instances are on the same host if they have the same agent. If one of them has no agent, their addresses
// are compared. If both have an agent, addresses are not compared: an address can move from one host to another.
type aliases struct {
	byAgent, byAddr, noAgent map[onHost]processAt
}

func newAliases() *aliases {
	return &aliases{byAgent: map[onHost]processAt{}, byAddr: map[onHost]processAt{}, noAgent: map[onHost]processAt{}}
}

// find finds the first process with the same alias on the same host, nil if there is none.
func (a *aliases) find(s processAt) (first *processAt) {
	host, alias := s.service.Host, s.process.Name
	if alias == "" {
		return nil
	}

	look := func(in map[onHost]processAt, key onHost) {
		if other, found := in[key]; found && first == nil {
			first = &other
		}
	}
	if host.Agent != "" {
		look(a.byAgent, onHost{agent: host.Agent, alias: alias})
	}
	for _, addr := range host.addrs() {
		if host.Agent == "" {
			look(a.byAddr, onHost{addr: addr, alias: alias})
		} else {
			look(a.noAgent, onHost{addr: addr, alias: alias})
		}
	}
	return first
}

// put adds a process. The first one with an alias stays.
func (a *aliases) put(s processAt) {
	host, alias := s.service.Host, s.process.Name
	if alias == "" {
		return
	}

	put := func(in map[onHost]processAt, key onHost) {
		if _, found := in[key]; !found {
			in[key] = s
		}
	}
	if host.Agent != "" {
		put(a.byAgent, onHost{agent: host.Agent, alias: alias})
	}
	for _, addr := range host.addrs() {
		key := onHost{addr: addr, alias: alias}
		if host.Agent == "" {
			put(a.noAgent, key)
		}
		put(a.byAddr, key)
	}
}

// DropClashes leaves out processes whose alias another process has on the same host, and returns a sentence for each.
// Processes in keep stay, and of others the one with the lowest id: it was there first.
func (b *Business) DropClashes(keep map[int]bool) (left []string) {
	// Put them into the order in which they count.
	var all []processAt
	b.each(func(s processAt) { all = append(all, s) })
	rank := func(s processAt) int {
		if keep[s.process.ID] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(x, y processAt) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.process.ID, y.process.ID))
	})

	// Find those that are there already.
	known, drop := newAliases(), map[int]bool{}
	for _, s := range all {
		if first := known.find(s); first != nil {
			drop[s.process.ID] = true
			left = append(left, fmt.Sprintf("process %d is left out: %s", s.process.ID, clashText(s, *first)))
			continue
		}
		known.put(s)
	}

	b.drop(drop)
	return left
}

// drop removes processes by their ids.
func (b *Business) drop(ids map[int]bool) {
	if len(ids) == 0 {
		return
	}
	b.eachService(func(s *ServiceInstance, _ docPath) {
		s.Processes = slices.DeleteFunc(s.Processes, func(p Process) bool { return ids[p.ID] })
	})
}

// addrs lists the addresses of a host.
func (h Host) addrs() []gozzard.HostAddr {
	var buf [2]gozzard.HostAddr
	list := buf[:0]
	if h.IP.IsValid() {
		list = append(list, gozzard.HostAddr{Cloud: h.Cloud, IP: h.IP})
	}
	if h.IPv6.IsValid() {
		list = append(list, gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6})
	}
	return list
}

func clashText(s, first processAt) string {
	describe := func(s processAt) string {
		return fmt.Sprintf("process %d (%s, service instance %q)", s.process.ID, dotted(s.set.Name, s.module.Name),
			s.service.Name)
	}
	return fmt.Sprintf("%q is on host %s twice: %s at %s and %s; give one of them another name",
		s.process.Name, s.service.Host, describe(first), first.at, describe(s))
}

// String names the host for people, by its address or its agent.
func (h Host) String() string {
	if addr := h.Addr(); addr.IP.IsValid() {
		return addr.String()
	}
	return "with agent " + string(h.Agent)
}
