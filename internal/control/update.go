package control

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// OrderUpdate tells an agent that is online to become a release. Nothing is promised: whoever wants it says it
// again until the agent has answered.
func (p *Plane) OrderUpdate(agent gozzard.AgentID, o gozzard.UpdateOrder) {
	if s := p.onlineSession(agent); s.id != 0 {
		p.tell(agent, s.cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandUpdate,
			Session: s.id, Update: &o})
	}
}

func (p *Plane) receiveUpdate(from gozzard.AgentID, r *gozzard.Report) {
	if r.Update == nil {
		p.refuse("update_empty", from)
		return
	}
	if p.o.Observe.Update != nil {
		p.o.Observe.Update(from, *r.Update)
	}
}

// Look finds what is known of one agent's host.
func (p *Plane) Look(agent gozzard.AgentID) (fleet.Host, bool) {
	return p.resolve(gozzard.Target{Agent: agent})
}
