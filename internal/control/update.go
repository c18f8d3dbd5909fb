package control

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
)

// OrderUpdate asks an agent that is online to update itself to a release. The order may be lost: the caller repeats it
// until the agent has answered.
func (p *Plane) OrderUpdate(agent gozzard.AgentID, o gozzard.UpdateOrder) {
	if s := p.reach(agent); s.ID != 0 {
		p.sendTo(agent, s, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandUpdate, Session: s.ID,
			Update: &o})
	}
}

func (p *Plane) receiveUpdate(from gozzard.AgentID, r *gozzard.Report) {
	if r.Update == nil {
		p.reject("update_empty", from)
		return
	}
	if p.o.Observe.Update != nil {
		p.o.Observe.Update(from, *r.Update)
	}
}

// Look finds the host of an agent.
func (p *Plane) Look(agent gozzard.AgentID) (fleet.Host, bool) {
	return p.resolve(gozzard.Target{Agent: agent})
}
