package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

// Several servers may share a record. The home of an agent is the server with its present session: that one delivers. What
// the others still have of it does no harm, because the record takes no change that does not fit.

// releasers is how many agents get what waits for them at a time. They share transactions of the record.
const releasers = 128

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

// Missing lists the attempts that this server does not have, and whose verdicts it did not record lately.
func (e *Engine) Missing(list []gozzard.Attempt) (missing []gozzard.Attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		_, decided := e.queue.recent.owner(list[i].Op)
		if e.queue.attempts[list[i].Op] == nil && !decided {
			missing = append(missing, list[i])
		}
	}
	return missing
}

// TakeUp takes up attempts that another server accepted or left open, and dispatches those that wait for agents with a
// session here.
func (e *Engine) TakeUp(ctx context.Context, list []gozzard.Attempt, apps map[gozzard.TaskSeq]string) {
	e.Restore(list, apps)

	// Their agents.
	agents := map[gozzard.AgentID]bool{}
	for i := range list {
		if id := list[i].Agent; list[i].State == gozzard.AttemptPending && e.OnlineSession(id).ID != 0 {
			agents[id] = true
		}
	}

	places := make(chan struct{}, releasers)
	var wg sync.WaitGroup
	for id := range agents {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			defer e.LockAgent(id)()
			e.makeReady(ctx, id)
		})
	}
	wg.Wait()
}

// Resume takes up attempts that are recorded as dispatched in the present session of their agents, and sends them: nobody
// knows whether they were sent. The agent executes an operation once.
func (e *Engine) Resume(list []gozzard.Attempt, apps map[gozzard.TaskSeq]string) {
	e.change(func(now time.Time) {
		for i := range list {
			a, kind := &list[i], AddedDispatched
			if e.queue.attempts[a.Op] != nil {
				continue
			}
			if a.State == gozzard.AttemptUnknown {
				kind = FoundUnknown
			} else {
				e.queue.quotas[apps[a.Ref.Task]]++
			}
			e.queue.add(a, apps[a.Ref.Task], kind, now)
		}
	})
}

// Decided is the session of an agent whose HELLO has decided about everything that was open then; its ID is 0 otherwise.
func (e *Engine) Decided(id gozzard.AgentID) Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.queue.agents[id]; g != nil && g.settled {
		return g.session
	}
	return Session{}
}

// Differ lists the operations that wait here although the record has them as something else.
func (e *Engine) Differ(list []gozzard.Attempt) (ops []gozzard.OpID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		a := e.queue.attempts[list[i].Op]
		if a != nil && a.state == Waiting && list[i].State != gozzard.AttemptPending {
			ops = append(ops, list[i].Op)
		}
	}
	return ops
}

// LetGo forgets the session and the attempts of an agent that has opened a newer session with another server.
func (e *Engine) LetGo(id gozzard.AgentID, session uint64) {
	e.change(func(now time.Time) {
		g := e.queue.agents[id]
		if g == nil || g.session.ID >= session {
			return
		}
		for _, a := range slices.Clone(g.attempts) {
			e.queue.apply(a, Event{Kind: LetGo}, now)
		}
		g.session, g.online, g.settled = Session{}, false, false
		if len(g.attempts) == 0 {
			delete(e.queue.agents, id)
		}
	})
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
