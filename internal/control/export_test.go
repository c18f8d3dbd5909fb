package control

import (
	"time"

	"github.com/gozzard/gozzard"
)

// EndSnapshot is called when the last part of the snapshot of a server has arrived.
func (p *Plane) EndSnapshot(server string) { p.peers.endSnapshot(server) }

// SetOffline is called when the home of an agent says that it is silent, or is gone itself.
func (p *Plane) SetOffline(agent gozzard.AgentID) { p.peers.setOffline(agent, time.Now()) }
