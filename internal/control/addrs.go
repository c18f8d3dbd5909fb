package control

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gozzard/gozzard"
)

// claims are the agents that reported addresses which are not theirs. Each is logged once, so that no agent can fill the
// log.
type claims struct {
	mu   sync.Mutex
	seen map[gozzard.AgentID]bool
}

// first reports whether this is the first claim of an agent.
func (c *claims) first(agent gozzard.AgentID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[agent] {
		return false
	}
	if c.seen == nil {
		c.seen = map[gozzard.AgentID]bool{}
	}
	c.seen[agent] = true
	return true
}

// addrsOf are the addresses of an agent: those that the server has for it, or else those that it reports, as far as they
// are of its cloud area. One host has at most MaxHostAddrs.
func (p *Plane) addrsOf(agent gozzard.AgentID, cloud int, reported []gozzard.HostAddr) []gozzard.HostAddr {
	addrs := slices.DeleteFunc(slices.Clone(reported),
		func(a gozzard.HostAddr) bool { return a.Cloud != cloud || !a.IP.IsValid() })
	if p.o.Addrs != nil {
		addrs = p.o.Addrs(agent, addrs)
	}
	return addrs[:min(len(addrs), gozzard.MaxHostAddrs)]
}

// noteClaims counts addresses that an agent reports and that are not its own. The first time they are logged and become
// an event.
func (p *Plane) noteClaims(agent gozzard.AgentID, reported, addrs []gozzard.HostAddr) {
	var foreign []string
	for _, a := range reported {
		if !slices.Contains(addrs, a) {
			foreign = append(foreign, a.String())
		}
	}
	if len(foreign) == 0 {
		return
	}
	p.reject("foreign_address", agent)
	if !p.claims.first(agent) {
		return
	}

	text := strings.Join(foreign[:min(len(foreign), gozzard.MaxHostAddrs)], ", ")
	p.o.Log.Warn("an agent reports addresses that are not its own, they are not used", "agent", agent,
		"addresses", text, "number", len(foreign))
	var at gozzard.HostAddr
	if len(addrs) > 0 {
		at = addrs[0]
	}
	p.note(agent, at, gozzard.Event{Kind: gozzard.EventForeignAddress, At: p.o.Now().UnixMilli(),
		Message: fmt.Sprintf("the agent reports %d address(es) that are not its own, they are not used: %s",
			len(foreign), text)})
}

// Readdress applies the present addresses of an agent, after an admin has changed them.
func (p *Plane) Readdress(agent gozzard.AgentID) {
	unlock := p.delivery.LockAgent(agent) // a session of the agent may be opened at this moment
	defer unlock()
	if p.o.Addrs == nil {
		return
	}
	if h, ok := p.o.Live.Host(agent); ok {
		p.o.Live.SetAddrs(agent, p.o.Addrs(agent, h.Info.Addrs))
	}
}
