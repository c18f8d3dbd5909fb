package topology

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// onHost is an alias on a host. The host is named by its agent or by an address.
type onHost struct {
	agent gozzard.AgentID
	addr  gozzard.HostAddr
	alias string
}

// clashes lists processes with the same alias on the same host, in any modules: they would have the same key.
//
// Two service instances are on the same host if they have the same agent. If one of them has no agent, their addresses
// are compared. If both have an agent, addresses are not compared: an address can move from one host to another.
func (b *Business) clashes() []gozzard.Fault {
	var faults []gozzard.Fault
	byAgent, byAddr, noAgent := map[onHost]processAt{}, map[onHost]processAt{}, map[onHost]processAt{}
	b.each(func(s processAt) {
		host, alias := s.service.Host, s.process.Name
		if alias == "" {
			return
		}

		// Find the first process with the same alias on the same host.
		var first *processAt
		look := func(in map[onHost]processAt, key onHost) {
			if other, found := in[key]; found && first == nil {
				first = &other
			}
		}

		put := func(in map[onHost]processAt, key onHost) {
			if _, found := in[key]; !found {
				in[key] = s
			}
		}

		if host.Agent != "" {
			look(byAgent, onHost{agent: host.Agent, alias: alias})
			put(byAgent, onHost{agent: host.Agent, alias: alias})
		}

		for _, addr := range host.addrs() {
			key := onHost{addr: addr, alias: alias}
			if host.Agent == "" {
				look(byAddr, key)
				put(noAgent, key)
			} else {
				look(noAgent, key)
			}
			put(byAddr, key)
		}

		if first != nil {
			faults = append(faults, gozzard.Fault{Path: s.at.String() + ".name", Text: clashText(s, *first)})
		}
	})

	return faults
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
