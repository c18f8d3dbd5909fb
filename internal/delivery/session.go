package delivery

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Contact says what a message of an agent means for its session.
type Contact uint8

// The contacts.
const (
	ContactNew   Contact = iota // of a session that this server has not opened: the agent must say HELLO
	ContactOld                  // of a session before the present one
	ContactAlive                // the session is alive, as before
	ContactBack                 // the session is alive again
)

// LockAgent makes the caller the only one to open sessions of an agent or to dispatch what waits for it, so that
// operations are sent in the order of their tasks.
func (e *Engine) LockAgent(id gozzard.AgentID) (unlock func()) {
	l := e.agentLock(id)
	l.Lock()
	return l.Unlock
}

func (e *Engine) agentLock(id gozzard.AgentID) *sync.Mutex {
	return &e.agentLocks[maphash.String(e.seed, string(id))%uint64(len(e.agentLocks))]
}

// OpenSession makes a session the agent's present one, unless a newer one is. Nothing is sent in it before Reconcile.
func (e *Engine) OpenSession(id gozzard.AgentID, s Session, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.queue.agent(id)
	if gozzard.MayOpenSession(g.session.ID, s.ID) {
		s.Behind = s.Behind || g.session.Behind
		g.session, g.decided, g.settled = s, false, false
		e.renewLease(g, now)
	}
}

// Session is the present session of an agent; its ID is 0 when there is none. ready reports whether operations may be
// recorded as dispatched in it when they are accepted.
func (e *Engine) Session(id gozzard.AgentID) (s Session, online, ready bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.queue.agents[id]
	if g == nil {
		return Session{}, false, false
	}
	return g.session, g.online, g.ready()
}

// OnlineSession is the session of an agent that is online; its ID is 0 otherwise.
func (e *Engine) OnlineSession(id gozzard.AgentID) Session {
	if s, online, _ := e.Session(id); online {
		return s
	}
	return Session{}
}

// Online lists the agents that are online.
func (e *Engine) Online() []gozzard.AgentID {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]gozzard.AgentID, 0, len(e.queue.agents))
	for id, g := range e.queue.agents {
		if g.online {
			list = append(list, id)
		}
	}
	return list
}

// Connected counts the agents that are online.
func (e *Engine) Connected() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.queue.agents {
		if g.online {
			n++
		}
	}
	return n
}

// Heard renews the lease of an agent's session.
func (e *Engine) Heard(id gozzard.AgentID, session uint64, now time.Time) Contact {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.queue.agents[id]
	switch {
	case g == nil || g.session.ID == 0 || g.session.ID < session:
		return ContactNew
	case g.session.ID > session:
		return ContactOld
	}

	if g.online {
		g.heard = now
		return ContactAlive
	}
	e.renewLease(g, now)
	return ContactBack
}

// renewLease makes an agent online. The caller holds e.mu.
func (e *Engine) renewLease(g *agent, now time.Time) {
	g.heard, g.online = now, true
	if end := now.Add(e.o.Lease); end.Before(e.leaseEnds) {
		e.leaseEnds = end
	}
}

// expireLeases marks agents that were silent for the lease as offline. Attempts that they may not have are looked at
// right away. It looks at the agents only when a lease can have ended: a look at all of a large fleet at every tick
// would cost as much as their heartbeats.
func (e *Engine) expireLeases(now time.Time) {
	if now.Before(e.leaseEnds) {
		return
	}

	e.leaseEnds = now.Add(e.o.Lease)
	for id, g := range e.queue.agents {
		if !g.online {
			continue
		}
		if end := g.heard.Add(e.o.Lease); end.After(now) {
			if end.Before(e.leaseEnds) {
				e.leaseEnds = end
			}
			continue
		}

		g.online = false
		e.o.Silent(id, g.heard)
		for _, a := range g.attempts {
			e.queue.apply(a, Event{Kind: AgentSilent}, now)
		}
	}
}
