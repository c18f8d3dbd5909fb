package topology

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// onHost is an alias on a host that is known by its agent or by an address.
type onHost struct {
	agent gozzard.AgentID
	addr  gozzard.HostAddr
	alias string
}

// clashes lists processes of one alias on one host, in whatever modules: the fleet would know both by the same key.
//
// A host is known by its agent. Where one of two has none, their addresses decide; where both have one, addresses
// say nothing, since two hosts can have the same one in turns.
func (b *Business) clashes() []gozzard.Fault {
	var faults []gozzard.Fault
	byAgent, byAddr, anonymous := map[onHost]spot{}, map[onHost]spot{}, map[onHost]spot{}
	b.each(func(s spot) {
		host, alias := s.service.Host, s.process.Name
		if alias == "" {
			return
		}

		var first *spot
		look := func(in map[onHost]spot, key onHost) {
			if other, found := in[key]; found && first == nil {
				first = &other
			}
		}

		put := func(in map[onHost]spot, key onHost) {
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
				put(anonymous, key)
			} else {
				look(anonymous, key)
			}
			put(byAddr, key)
		}

		if first != nil {
			faults = append(faults, gozzard.Fault{Path: s.at.String() + ".name", Text: clashText(s, *first)})
		}
	})

	return faults
}

// addrs are the addresses that a host has.
func (h Host) addrs() []gozzard.HostAddr {
	var room [2]gozzard.HostAddr
	list := room[:0]
	if h.IP.IsValid() {
		list = append(list, gozzard.HostAddr{Cloud: h.Cloud, IP: h.IP})
	}
	if h.IPv6.IsValid() {
		list = append(list, gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6})
	}
	return list
}

func clashText(s, first spot) string {
	describe := func(s spot) string {
		return fmt.Sprintf("process %d (%s, service instance %q)", s.process.ID, dotted(s.set.Name, s.module.Name),
			s.service.Name)
	}
	return fmt.Sprintf("%q is on host %s twice: %s at %s and %s; give one of them another name",
		s.process.Name, s.service.Host, describe(first), first.at, describe(s))
}

// String is how people call the host.
func (h Host) String() string {
	if addr := h.Addr(); addr.IP.IsValid() {
		return addr.String()
	}
	return "with agent " + string(h.Agent)
}
