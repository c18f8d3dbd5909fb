package control

import (
	"time"

	"github.com/gozzard/gozzard"
)

// EndSnapshot is called when the last part of the snapshot of a server has arrived.
func (p *Plane) EndSnapshot(server string) { p.peers.endSnapshot(server) }

// SetOffline is called when the home of an agent says that it is silent, or is gone itself.
func (p *Plane) SetOffline(agent gozzard.AgentID) { p.peers.setOffline(agent, time.Now()) }

// Outbox holds what a server has not told the others yet.
type Outbox struct{ box outbox }

// Of is the message for a report of an agent, or a registration.
func (o *Outbox) Of(agent gozzard.AgentID) *gozzard.PeerNews { return o.box.of(agent) }

// EndOf is the message for the end of something of an agent.
func (o *Outbox) EndOf(agent gozzard.AgentID) *gozzard.PeerNews { return o.box.endOf(agent) }

// Take takes one message.
func (o *Outbox) Take() (n gozzard.PeerNews, more bool) { return o.box.take() }

// Ask asks a server for everything.
func (p *Plane) Ask(server string) { p.peers.send(server, &gozzard.PeerNews{Want: true}) }

// NewJoiningOf makes one with room for some agents.
func NewJoiningOf(most int) *Joining { return newJoining(most, nil) }
