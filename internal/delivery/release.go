package delivery

import (
	"context"
	"sync"

	"github.com/gozzard/gozzard"
)

// askRelease asks for what waits for agents to be dispatched. The release loop does it: the record may be slow, and an agent
// that is asked for again meanwhile is released once.
func (e *Engine) askRelease(agents []gozzard.AgentID) {
	if len(agents) == 0 {
		return
	}
	e.mu.Lock()
	for _, id := range agents {
		e.releases[id] = true
	}
	e.mu.Unlock()
	signal(e.released)
}

// releaseLoop dispatches what waits for agents.
func (e *Engine) releaseLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.released:
		}

		for agents := e.takeReleases(); len(agents) > 0 && ctx.Err() == nil; agents = e.takeReleases() {
			e.releaseAll(ctx, agents)
		}
	}
}

// takeReleases lists some of the agents that were asked for, and for which something still waits.
func (e *Engine) takeReleases() (agents []gozzard.AgentID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.releases {
		if len(agents) == lookMost {
			break
		}
		delete(e.releases, id)
		if g := e.queue.agents[id]; g != nil && g.online && g.decided && g.waiting > 0 {
			agents = append(agents, id)
		}
	}
	return agents
}

// releaseAll dispatches what waits for agents. Where several servers share the record, it looks first: an older attempt,
// which another server accepted, must be dispatched before.
func (e *Engine) releaseAll(ctx context.Context, agents []gozzard.AgentID) {
	var v *view
	if e.o.Shared {
		var err error
		if v, err = e.read(ctx, agents); err != nil {
			if ctx.Err() == nil {
				e.o.Log.Warn("cannot look at what waits for agents, trying again", "agents", len(agents), "err", err)
			}
			return // the timer asks again
		}
	}

	together(agents, func(id gozzard.AgentID) {
		lock := e.agentLock(id)
		if !lock.TryLock() { // another goroutine does it
			return
		}
		defer lock.Unlock()
		if v != nil {
			e.look(ctx, id, v)
		}
		e.makeReady(ctx, id)
	})
}

// together calls f for agents, several at a time: they share transactions of the record.
func together(agents []gozzard.AgentID, f func(gozzard.AgentID)) {
	places := make(chan struct{}, lookers)
	var wg sync.WaitGroup
	for _, id := range agents {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			f(id)
		})
	}
	wg.Wait()
}

// later is work that waits for another goroutine.
type later struct {
	wake chan struct{}

	mu   sync.Mutex
	work work
}

// add adds the changes of the record.
func (l *later) add(w *work) {
	if len(w.sendBack)+len(w.giveUp)+len(w.withdraw)+len(w.supersede)+len(w.interrupt)+len(w.recall) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work.sendBack = append(l.work.sendBack, w.sendBack...)
	l.work.giveUp = append(l.work.giveUp, w.giveUp...)
	l.work.withdraw = append(l.work.withdraw, w.withdraw...)
	l.work.supersede = append(l.work.supersede, w.supersede...)
	l.work.interrupt = append(l.work.interrupt, w.interrupt...)
	l.work.recall = append(l.work.recall, w.recall...)
	signal(l.wake)
}

// take takes all of it.
func (l *later) take() work {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.work
	l.work = work{}
	return w
}

// signal wakes the goroutine that waits for a channel of size 1, now or when it waits again.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
