package control

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// maxAccepting bounds the tasks that are on their way into the record or into memory at the same time.
const maxAccepting = 1024

// launcher brings accepted tasks from the record into memory, in the order of their numbers. The store sends a task on
// committed when it is durable; the holder of order receives and launches. So the order of the channel is the order of
// launching, whichever caller does it.
type launcher struct {
	order     sync.Mutex
	committed chan *record.NewTask
	places    chan struct{} // one for each task that may come on committed: the store never waits there
}

func newLauncher() launcher {
	return launcher{committed: make(chan *record.NewTask, maxAccepting), places: make(chan struct{}, maxAccepting)}
}

// accept records a task and launches it. When it returns without an error, the task is durable and in memory.
func (p *Plane) accept(ctx context.Context, t *record.NewTask) (record.Accepted, error) {
	select {
	case p.launcher.places <- struct{}{}:
	case <-ctx.Done():
		return record.Accepted{}, ctx.Err()
	}
	defer func() { <-p.launcher.places }()

	t.Committed = p.launcher.committed
	acc, err := p.o.Store.Accept(ctx, t)
	p.launchCommitted() // also after an error: no task stays in the channel longer than its place is taken
	if inDoubt(err) {
		p.delivery.Doubt(agentsOf(t.Attempts)...)
	}
	return acc, err
}

// inDoubt reports whether an error of the record leaves open if the write was done.
func inDoubt(err error) bool {
	var e *gozzard.Error
	if !errors.As(err, &e) {
		return err != nil
	}
	return e.Kind == gozzard.ErrUnavailable || e.Kind == gozzard.ErrInternal
}

// launchCommitted launches every task that the store has announced. The store announces a task before it answers any
// later write, so after such a write and this call everything older is in memory.
func (p *Plane) launchCommitted() {
	p.launcher.order.Lock()
	defer p.launcher.order.Unlock()
	for {
		select {
		case t := <-p.launcher.committed:
			p.launch(t)
		default:
			return
		}
	}
}

// launch takes up an accepted task: its new processes are known from now on, and its open attempts are delivered.
func (p *Plane) launch(t *record.NewTask) {
	for i := range t.Register {
		r := &t.Register[i]
		if p.seed(r.ID.Agent, seedStatus(r)) {
			p.peers.noteSeed(r.ID.Agent, seedStatus(r))
		}
	}

	own, others := p.peers.split(t.Attempts)
	p.launched(&t.Task, own)
	p.delivery.Launch(t.Task.Caller.App, own)
	if others != nil {
		p.delivery.Unreserve(t.Task.Caller.App, len(t.Attempts)-len(own))
		p.peers.wakeOthers(others, t.Task.Seq)
	}
}

// seed adds a registered process, and reports whether it was new. What its host has reported of it stays.
func (p *Plane) seed(agent gozzard.AgentID, s gozzard.Status) bool {
	if p.o.Live.IsSeeded(agent, s.Key) {
		return false
	}
	p.o.Live.Seed(agent, s)
	return true
}

// agentsOf lists the agents of attempts.
func agentsOf(list []gozzard.Attempt) []gozzard.AgentID {
	agents := make([]gozzard.AgentID, 0, len(list))
	for i := range list {
		if !list[i].State.Final() {
			agents = append(agents, list[i].Agent)
		}
	}
	slices.Sort(agents)
	return slices.Compact(agents)
}
