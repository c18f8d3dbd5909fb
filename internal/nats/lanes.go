package nats

import "sync"

// lanes queues messages by their subject for a few workers. Messages of one subject are worked off in order and
// never two at a time; subjects take turns, so an agent that floods its lane delays the others by one message per
// turn. Bounds are by bytes, per lane and for all; what is beyond them is refused and the lane's sender loses it.
type lanes struct {
	perLane, total int

	mu     sync.Mutex
	wake   sync.Cond
	bySubj map[string]*lane
	ready  fifo[*lane] // lanes with messages that no worker is at
	bytes  int
	closed bool
}

type lane struct {
	subject string
	msgs    fifo[[]byte]
	bytes   int
}

// msgOverhead is what a message costs beyond its content, so that a flood of empty ones is bounded too.
const msgOverhead = 64

func newLanes(perLane, total int) *lanes {
	q := &lanes{perLane: perLane, total: total, bySubj: make(map[string]*lane)}
	q.wake.L = &q.mu
	return q
}

// push reports whether there was room. It does not wait.
func (q *lanes) push(subject string, data []byte) bool {
	cost := len(data) + msgOverhead
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.closed {
		return true // nobody will miss it
	}

	l := q.bySubj[subject]
	if l == nil {
		if q.bytes+cost > q.total {
			return false
		}
		l = &lane{subject: subject}
		q.bySubj[subject] = l
		q.ready.push(l)
		q.wake.Signal()
	} else if l.bytes+cost > q.perLane || q.bytes+cost > q.total {
		return false
	}

	l.msgs.push(data)
	l.bytes += cost
	q.bytes += cost
	return true
}

// take waits for the next message. Its lane is the caller's until done; ok is false when the lanes are closed.
func (q *lanes) take() (l *lane, data []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for q.ready.len() == 0 && !q.closed {
		q.wake.Wait()
	}

	if q.closed {
		return nil, nil, false
	}

	l = q.ready.pop()
	data = l.msgs.pop()
	cost := len(data) + msgOverhead
	l.bytes -= cost
	q.bytes -= cost
	return l, data, true
}

// done gives a lane back.
func (q *lanes) done(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.msgs.len() == 0 {
		delete(q.bySubj, l.subject)
		return
	}
	q.ready.push(l)
	q.wake.Signal()
}

// close throws away what waits and ends every take.
func (q *lanes) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Broadcast()
}

// fifo is a queue in a slice whose front is reclaimed as it empties.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) { f.items = append(f.items, v) }

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	if f.head*2 >= len(f.items) { // moves each item once per halving: constant on average
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return v
}
