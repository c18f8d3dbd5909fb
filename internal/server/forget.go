package server

import (
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
)

// forgetRemoved takes away what is left of hosts that were removed: an earlier version left their processes, and a
// server may end between the two steps of a removal.
func (s *Server) forgetRemoved(ctx context.Context) error {
	for _, m := range s.trust.registry.Agents() {
		if m.State != enrol.StateRemoved {
			continue
		}
		_, known := s.fleet.Host(m.Agent)
		rows, _ := s.fleet.Find(gozzard.Everything(), fleet.Filter{Agents: []gozzard.AgentID{m.Agent}}, 0, 0)
		if !known && rows == 0 {
			continue
		}

		host := gozzard.HostRef{Agent: m.Agent}
		for _, ip := range m.IPs {
			host.Addrs = append(host.Addrs, gozzard.HostAddr{Cloud: m.Cloud, IP: ip})
		}
		if _, err := s.plane.Forget(ctx, system(), host); err != nil {
			return fmt.Errorf("cannot take away what belongs to the removed host %s: %w", m.Agent, err)
		}
	}
	return nil
}
