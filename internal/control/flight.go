package control

import (
	"container/heap"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// flight is an attempt that is not final, in memory. The record is the truth; a flight only knows what to do next.
type flight struct {
	ref      gozzard.AttemptRef
	op       gozzard.Op
	agent    gozzard.AgentID
	cloud    int
	state    gozzard.AttemptState
	session  uint64
	deadline time.Time
	expires  time.Time
	task     *taskState

	seated   bool // counts for its app, see seats
	sent     bool
	inWindow bool    // sent, and the agent has not answered nor been repeated to
	begun    bool    // the agent has it; no need to repeat
	prev     *flight // an earlier operation on the same process that is not sent yet
	tries    int
	due      time.Time // next look; zero when not in the heap
	index    int
}

// taskState is a task with open attempts, in memory.
type taskState struct {
	seq      gozzard.TaskSeq
	app      string
	open     int
	queue    []*flight // not sent yet
	inWindow int       // sent and not answered yet
	queued   bool      // in Plane.ready
	done     chan struct{}
}

// newFlight takes up an open attempt, for which its app has a seat.
func (p *Plane) newFlight(a *gozzard.Attempt, app string) *flight {
	t := p.tasks[a.Ref.Task]
	if t == nil {
		t = &taskState{seq: a.Ref.Task, app: app, done: make(chan struct{})}
		p.tasks[a.Ref.Task] = t
	}

	t.open++
	return &flight{
		ref: a.Ref, agent: a.Agent, cloud: a.Addr.Cloud, state: a.State, session: a.Session, deadline: a.Deadline,
		expires: a.Expires,
		task:    t, seated: a.State != gozzard.AttemptUnknown,
		op: gozzard.Op{ID: a.Op, Ref: a.Ref, Gen: a.Generation(), Action: a.Action, Key: a.Key, Labels: a.Labels,
			Spec: a.Spec},
	}
}

// track enters a flight into the tables and looks at it again by its deadline.
func (p *Plane) track(f *flight) {
	p.flights[f.op.ID] = f
	m := p.byAgent[f.agent]
	if m == nil {
		m = map[gozzard.OpID]*flight{}
		p.byAgent[f.agent] = m
	}
	m[f.op.ID] = f
	p.schedule(f, f.deadline)
}

// drop forgets a flight whose attempt is final.
func (p *Plane) drop(f *flight) {
	if p.flights[f.op.ID] != f {
		return
	}

	delete(p.flights, f.op.ID)

	if m := p.byAgent[f.agent]; m != nil {
		delete(m, f.op.ID)
		if len(m) == 0 {
			delete(p.byAgent, f.agent)
		}
	}

	p.leaveWindow(f)
	f.sent = true // whatever queue still has it passes over it
	if f.state == gozzard.AttemptPending {
		p.unhold(f)
	}

	id := gozzard.ProcID{Agent: f.agent, Key: f.op.Key}
	if p.unsent[id] == f {
		delete(p.unsent, id)
	}

	p.schedule(f, time.Time{})
	p.vacate(f)
	f.task.open--

	if f.task.open == 0 {
		delete(p.tasks, f.task.seq)
		close(f.task.done)
	}
}

// enqueue puts a flight that is dispatched in the record into its task's queue for the sender.
func (p *Plane) enqueue(f *flight) {
	f.sent, f.begun, f.tries = false, false, 0
	id := gozzard.ProcID{Agent: f.agent, Key: f.op.Key}
	if prev := p.unsent[id]; prev != nil && prev != f && !prev.sent {
		f.prev = prev
	}
	p.unsent[id] = f
	f.task.queue = append(f.task.queue, f)
	p.markReady(f.task)
}

func (p *Plane) markReady(t *taskState) {
	if !t.queued && len(t.queue) > 0 && t.inWindow < p.o.Window {
		t.queued = true
		p.ready.add(t)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// leaveWindow makes room for another flight of the task. A silent host leaves the window at its first repeat, so it
// delays nobody.
func (p *Plane) leaveWindow(f *flight) {
	if f.inWindow {
		f.inWindow = false
		f.task.inWindow--
		p.markReady(f.task)
	}
}

// hold keeps a pending flight until its agent is ready for it; the timer looks at it when it is due. What comes
// later for that agent waits too.
func (p *Plane) hold(f *flight, due time.Time) {
	p.waiting[f.agent] = append(p.waiting[f.agent], f)
	if s := p.sessions[f.agent]; s != nil {
		s.ready = false
	}
	p.schedule(f, due)
}

// unhold takes a flight out of the list of those that wait, so that hosts which never come back keep nothing.
func (p *Plane) unhold(f *flight) {
	left := slices.DeleteFunc(p.waiting[f.agent], func(w *flight) bool { return w == f })
	if len(left) == 0 {
		delete(p.waiting, f.agent)
		return
	}
	p.waiting[f.agent] = left
}

// schedule sets when the timer looks at a flight again; the zero time takes it out.
func (p *Plane) schedule(f *flight, at time.Time) {
	in := !f.due.IsZero()
	f.due = at
	switch {
	case at.IsZero() && in:
		heap.Remove(&p.due, f.index)
	case at.IsZero():
	case in:
		heap.Fix(&p.due, f.index)
	default:
		heap.Push(&p.due, f)
	}
}

// dueHeap orders flights by due time.
type dueHeap []*flight

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push and Pop are for container/heap.
func (h *dueHeap) Push(x any) {
	f := x.(*flight)
	f.index = len(*h)
	*h = append(*h, f)
}

// Pop removes the last element.
func (h *dueHeap) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return f
}
