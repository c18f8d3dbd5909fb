package control

import (
	"context"

	"github.com/gozzard/gozzard"
)

// lowestProtocol needs no record: nothing is below it.
const lowestProtocol = 1

// raise is a version of the protocol that an agent turned out to speak.
type raise struct {
	agent   gozzard.AgentID
	session uint64
	version uint32
}

// speaks notes the version of an agent that was welcomed. It is not taken from HELLO: a new program that dies
// before its welcome is put back by itself, and the one before must be let in. A full report comes from a program
// that stays.
func (p *Plane) speaks(from gozzard.AgentID, r *gozzard.Report) {
	p.mu.Lock()
	s := p.sessions[from]
	known := s == nil || s.id != r.Session || s.protocol >= r.Version
	p.mu.Unlock()
	if known {
		return
	}
	select {
	case p.raises <- raise{from, r.Session, r.Version}:
	default: // the next full report says it again
	}
}

// protocolLoop records what agents speak, so that what is older is not let in later.
func (p *Plane) protocolLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.raises:
			if err := p.o.Store.RaiseProtocol(ctx, r.agent, r.version); err != nil {
				if ctx.Err() == nil {
					p.o.Log.Error("cannot record what an agent speaks, trying again with its next report", "agent",
						r.agent, "err", err)
				}
				continue
			}
			p.mu.Lock()
			if s := p.sessions[r.agent]; s != nil && s.id == r.session {
				s.protocol = max(s.protocol, r.version)
			}
			p.mu.Unlock()
		}
	}
}

// downgraded: a program without the checks of a later protocol was put in the place of one that had them. It is not
// let in.
func (p *Plane) downgraded(agent gozzard.AgentID, said, known uint32) {
	p.refuse("old_protocol", agent)
	if n := p.downgrades.Add(1); n&(n-1) == 0 { // ever more rarely: it comes again and again
		p.o.Log.Warn("an agent speaks an older protocol than before and is not let in", "agent", agent, "version",
			said, "before", known)
	}
	if p.o.Observe.Downgraded != nil {
		p.o.Observe.Downgraded(agent, said, known)
	}
}
