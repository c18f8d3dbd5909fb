package control

import (
	"context"
	"sync"

	"github.com/gozzard/gozzard/internal/record"
)

// maxAccepting bounds the tasks that are on their way into the record or into memory at the same time.
const maxAccepting = 1024

// launching brings accepted tasks from the record into memory, in the order of their numbers. The store sends a task
// on committed when it is durable; the holder of order receives and launches. So the order of the channel is the
// order of launching, whichever caller does it.
type launching struct {
	order     sync.Mutex
	committed chan *record.NewTask
	places    chan struct{} // one for each task that may come on committed: the store never waits there
}

func newLaunching() launching {
	return launching{committed: make(chan *record.NewTask, maxAccepting), places: make(chan struct{}, maxAccepting)}
}

// accept records a task and launches it. When it returns without an error, the task is durable and in memory.
func (p *Plane) accept(ctx context.Context, t *record.NewTask) (record.Accepted, error) {
	select {
	case p.launching.places <- struct{}{}:
	case <-ctx.Done():
		return record.Accepted{}, ctx.Err()
	}
	defer func() { <-p.launching.places }()

	t.Committed = p.launching.committed
	acc, err := p.o.Store.Accept(ctx, t)
	p.launchCommitted() // also after an error: no task stays in the channel longer than its place is taken
	return acc, err
}

// launchCommitted launches every task that the store has announced. The store announces a task before it answers any
// later write, so after such a write and this call everything older is in memory.
func (p *Plane) launchCommitted() {
	p.launching.order.Lock()
	defer p.launching.order.Unlock()
	for {
		select {
		case t := <-p.launching.committed:
			p.launch(t)
		default:
			return
		}
	}
}
