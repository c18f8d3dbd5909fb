package delivery

import (
	"container/heap"
	"time"
)

// dueHeap orders attempts by the time at which the timer looks at them.
type dueHeap []*Attempt

// set changes when the timer looks at an attempt.
func (h *dueHeap) set(a *Attempt, at time.Time) {
	in := !a.due.IsZero()
	a.due = at
	if in {
		heap.Fix(h, a.dueIndex)
	} else {
		heap.Push(h, a)
	}
}

// remove takes an attempt out, if it is in.
func (h *dueHeap) remove(a *Attempt) {
	if !a.due.IsZero() {
		heap.Remove(h, a.dueIndex)
		a.due = time.Time{}
	}
}

// next takes out an attempt whose time has come, nil when there is none.
func (h *dueHeap) next(now time.Time) *Attempt {
	if len(*h) == 0 || (*h)[0].due.After(now) {
		return nil
	}
	a := heap.Pop(h).(*Attempt)
	a.due = time.Time{}
	return a
}

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].dueIndex, h[j].dueIndex = i, j
}

// Push is for container/heap.
func (h *dueHeap) Push(x any) {
	a := x.(*Attempt)
	a.dueIndex = len(*h)
	*h = append(*h, a)
}

// Pop is for container/heap.
func (h *dueHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return a
}
