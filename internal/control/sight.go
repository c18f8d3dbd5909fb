package control

import "github.com/gozzard/gozzard"

// sight gives a func that decides what a caller may see of what happened on hosts. It decides once for each host and
// each namespace. A known host is judged by its present addresses, as with its processes; for any other host the
// address that was recorded counts.
func (p *Plane) sight(rights *gozzard.Rights) func(agent gozzard.AgentID, addr gozzard.HostAddr,
	namespace string) bool {
	if rights.SeesAll() {
		return func(gozzard.AgentID, gozzard.HostAddr, string) bool { return true }
	}

	type place struct {
		agent gozzard.AgentID
		addr  gozzard.HostAddr
	}
	hosts, spaces := map[place]gozzard.Marks{}, map[string]gozzard.Marks{}
	return func(agent gozzard.AgentID, addr gozzard.HostAddr, namespace string) bool {
		space, ok := spaces[namespace]
		if !ok {
			space = rights.MarkSpace(namespace)
			spaces[namespace] = space
		}

		at := place{agent, addr}
		host, ok := hosts[at]
		if !ok {
			ref := gozzard.HostRef{Agent: agent, Addrs: []gozzard.HostAddr{addr}}
			if h, known := p.o.Live.Host(agent); known {
				ref = h.Info.Ref()
			}
			host = rights.MarkHost(ref)
			hosts[at] = host
		}

		return space.Meet(host)
	}
}

// Sight is what a caller with these rights may see of what happened on hosts. It is for one moment: rights and hosts change.
func (p *Plane) Sight(rights *gozzard.Rights) func(gozzard.AgentID, gozzard.HostAddr, string) bool {
	return p.sight(rights)
}
