package control

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// sendTo sends a command in the present session of an agent, whichever server is its home.
func (p *Plane) sendTo(agent gozzard.AgentID, s delivery.Session, cmd *gozzard.Command) {
	if p.o.ThroughHome {
		if home, there := p.peers.homeOf(agent); home != "" && there.ID == s.ID {
			p.peers.send(home, &gozzard.PeerNews{Commands: []gozzard.PeerCommand{{Agent: agent, Cloud: s.Cloud, Command: cmd}}})
			return
		}
	}
	p.delivery.Send(agent, s.Cloud, cmd)
}

// passDown sends a command of another server to an agent of this one. Operations are not among them: the home alone
// delivers those, from the record.
func (s *peers) passDown(c *gozzard.PeerCommand) {
	if c.Command == nil {
		return
	}
	switch c.Command.Kind {
	case gozzard.CommandLogs, gozzard.CommandHistory, gozzard.CommandUpdate:
	default:
		return
	}
	if own := s.p.delivery.OnlineSession(c.Agent); own.ID != 0 && own.ID == c.Command.Session {
		s.p.delivery.Send(c.Agent, own.Cloud, c.Command)
	}
}
