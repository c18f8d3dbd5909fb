package delivery

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// Several servers may share a record. The home of an agent is the server with its present session: that one delivers. What
// the others still have of it does no harm, because the record takes no change that does not fit.

// Held lists the open operations that this server has.
func (e *Engine) Held() map[gozzard.OpID]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := make(map[gozzard.OpID]bool, len(e.queue.attempts))
	for id := range e.queue.attempts {
		held[id] = true
	}
	return held
}

// heldOf are the operations of agents that this server has.
func (e *Engine) heldOf(agents []gozzard.AgentID) map[gozzard.OpID]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := map[gozzard.OpID]bool{}
	for _, id := range agents {
		if g := e.queue.agents[id]; g != nil {
			for _, a := range g.attempts {
				held[a.op.ID] = true
			}
		}
	}
	return held
}

// SpecOf is the definition of an open operation of an agent; nil if the agent has no such operation here.
func (e *Engine) SpecOf(agent gozzard.AgentID, op gozzard.OpID) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.queue.attempts[op]
	if a == nil || a.agent.id != agent {
		return nil
	}
	return a.op.Spec
}

// Missing lists the attempts that this server does not have, and whose verdicts it did not record lately.
func (e *Engine) Missing(list []gozzard.Attempt) (missing []gozzard.Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		if e.isMissing(list[i].Op) {
			missing = append(missing, list[i])
		}
	}
	return missing
}

// MissingOps lists the operations that this server does not have, and whose verdicts it did not record lately.
func (e *Engine) MissingOps(list []gozzard.OpID) (missing []gozzard.OpID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range list {
		if e.isMissing(id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// LetGo forgets the session and the attempts of an agent that has opened a newer session with another server.
func (e *Engine) LetGo(id gozzard.AgentID, session uint64) {
	e.change(func(now time.Time) {
		g := e.queue.agents[id]
		if g == nil || g.session.ID >= session {
			return
		}
		e.leave(g, now)
	})
}

// leave forgets the session and the attempts of an agent. The lock is held.
func (e *Engine) leave(g *agent, now time.Time) {
	for _, a := range slices.Clone(g.attempts) {
		e.queue.apply(a, Event{Kind: LetGo}, now)
	}
	g.end()
	delete(e.queue.agents, g.id)
}

// Drop forgets operations of which another server recorded the verdict.
func (e *Engine) Drop(list []gozzard.OpID) {
	e.change(func(now time.Time) {
		for _, id := range list {
			if a := e.queue.attempts[id]; a != nil {
				e.queue.apply(a, Event{Kind: LetGo}, now)
			}
		}
	})
}

// Homes lists the agents with a session here, with the session.
func (e *Engine) Homes() map[gozzard.AgentID]Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make(map[gozzard.AgentID]Session, len(e.queue.agents))
	for id, g := range e.queue.agents {
		if g.session.ID != 0 {
			list[id] = g.session
		}
	}
	return list
}
