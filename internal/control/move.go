package control

import "github.com/gozzard/gozzard"

// Here lists the agents that are connected to this server, with their cloud areas.
func (p *Plane) Here() map[gozzard.AgentID]int {
	list := map[gozzard.AgentID]int{}
	for agent, session := range p.delivery.Homes() {
		list[agent] = session.Cloud
	}
	for agent := range list {
		if p.delivery.OnlineSession(agent).ID == 0 {
			delete(list, agent)
		}
	}
	return list
}

// Move asks agents of this server to use others. Each goes at a random moment of the next seconds. The server that it comes
// to names all servers again.
func (p *Plane) Move(agents []gozzard.AgentID, to []gozzard.ServerAddress) {
	for _, agent := range agents {
		if s := p.delivery.OnlineSession(agent); s.ID != 0 {
			p.delivery.Send(agent, s.Cloud, &gozzard.Command{Version: gozzard.ProtocolVersion, Kind: gozzard.CommandAck,
				Session: s.ID, Servers: to})
		}
	}
}

// IsSpreading reports whether agents still learn a change of the servers. It would undo a Move.
func (p *Plane) IsSpreading() bool { return p.o.Now().UnixNano() < p.spreadUntil.Load() }
