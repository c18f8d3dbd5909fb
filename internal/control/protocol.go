package control

import (
	"context"
	"sync"

	"github.com/gozzard/gozzard"
)

// lowestProtocol needs no record: nothing is below it.
const lowestProtocol = 1

// protocols records the highest version of the protocol that each agent has used, so that an older program cannot take
// the place of a newer one unnoticed.
type protocols struct {
	o *Options

	mu    sync.Mutex
	known map[gozzard.AgentID]spoken

	raises chan raise
}

// spoken is what is on record for the agent's present session.
type spoken struct {
	session uint64
	version uint32
}

// raise is a version above the one on record.
type raise struct {
	agent gozzard.AgentID
	spoken
}

func newProtocols(o *Options) protocols {
	return protocols{o: o, known: map[gozzard.AgentID]spoken{}, raises: make(chan raise, 1024)}
}

// opened notes what is on record when a session opens.
func (p *protocols) opened(agent gozzard.AgentID, session uint64, recorded uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gozzard.MayOpenSession(p.known[agent].session, session) {
		p.known[agent] = spoken{session, max(recorded, lowestProtocol)}
	}
}

// spoken notes the version of a full report. HELLO does not count: a new program that ends before its welcome is
// replaced by the one before, which must be welcome too. A full report comes from a program that stays.
func (p *protocols) spoken(from gozzard.AgentID, r *gozzard.Report) {
	p.mu.Lock()
	k := p.known[from]
	p.mu.Unlock()
	if k.session != r.Session || k.version >= r.Version {
		return
	}

	select {
	case p.raises <- raise{from, spoken{r.Session, r.Version}}:
	default: // the next full report says it again
	}
}

// loop records the versions.
func (p *protocols) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-p.raises:
			if err := p.o.Store.RaiseProtocol(ctx, r.agent, r.version); err != nil {
				if ctx.Err() == nil {
					p.o.Log.Error("cannot record the protocol version of an agent, trying again with its next report",
						"agent", r.agent, "err", err)
				}
				continue
			}

			p.mu.Lock()
			if k := p.known[r.agent]; k.session == r.session {
				p.known[r.agent] = spoken{k.session, max(k.version, r.version)}
			}
			p.mu.Unlock()
		}
	}
}

// downgraded rejects a session: a program without the checks of a later protocol took the place of one that had them.
func (p *Plane) downgraded(agent gozzard.AgentID, said, known uint32) {
	p.reject("old_protocol", agent)
	if n := p.downgrades.Add(1); n&(n-1) == 0 { // ever more rarely: the agent tries again and again
		p.o.Log.Warn("an agent uses an older protocol than before and is rejected", "agent", agent, "version", said,
			"before", known)
	}
	if p.o.Observe.Downgraded != nil {
		p.o.Observe.Downgraded(agent, said, known)
	}
}
