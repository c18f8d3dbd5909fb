package nats

import "sync"

// queues holds messages for a few workers, one queue per subject. Messages of one subject are processed in order and
// never two at a time. The workers serve the subjects in turn, so an agent that floods its queue delays each other
// agent by one message per turn. Each queue and all queues together are bounded by bytes; messages beyond a bound are
// dropped.
type queues struct {
	perQueue, total int // bounds, in bytes

	mu        sync.Mutex
	wake      sync.Cond
	bySubject map[string]*queue
	ready     fifo[*queue] // queues with messages that no worker is processing
	bytes     int
	closed    bool
}

// queue is the messages of one subject.
type queue struct {
	subject  string
	messages fifo[[]byte]
	bytes    int
}

// messageOverhead is the cost of a message besides its content. It bounds a flood of empty messages too.
const messageOverhead = 64

func newQueues(perQueue, total int) *queues {
	q := &queues{perQueue: perQueue, total: total, bySubject: make(map[string]*queue)}
	q.wake.L = &q.mu
	return q
}

// push adds a message and reports whether there was room. It does not block.
func (q *queues) push(subject string, data []byte) bool {
	cost := len(data) + messageOverhead
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.closed {
		return true // the hub stops: the message does not count as dropped
	}

	one := q.bySubject[subject]
	if one == nil {
		if q.bytes+cost > q.total {
			return false
		}
		one = &queue{subject: subject}
		q.bySubject[subject] = one
		q.ready.push(one)
		q.wake.Signal()
	} else if one.bytes+cost > q.perQueue || q.bytes+cost > q.total {
		return false
	}

	one.messages.push(data)
	one.bytes += cost
	q.bytes += cost
	return true
}

// next waits for a message. No other worker gets a message of the same queue until the caller calls done. ok is false
// when the queues are closed.
func (q *queues) next() (from *queue, data []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for q.ready.len() == 0 && !q.closed {
		q.wake.Wait()
	}
	if q.closed {
		return nil, nil, false
	}

	from = q.ready.pop()
	data = from.messages.pop()
	cost := len(data) + messageOverhead
	from.bytes -= cost
	q.bytes -= cost
	return from, data, true
}

// done makes a queue available to the workers again.
func (q *queues) done(one *queue) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if one.messages.len() == 0 {
		delete(q.bySubject, one.subject)
		return
	}
	q.ready.push(one)
	q.wake.Signal()
}

// close drops all waiting messages and ends every call of next.
func (q *queues) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Broadcast()
}

// fifo is a queue in a slice that reuses the space of removed items.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) { f.items = append(f.items, v) }

// pop removes the first item. There must be one.
func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.head]
	f.items[f.head] = zero
	f.head++

	// Moving the rest when half is empty moves each item once per halving: constant cost on average.
	if f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return v
}
