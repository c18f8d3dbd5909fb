package fairlist

import (
	"container/heap"
	"iter"
)

// List is a bounded list. Every thing in it has a number and an owner. It is not safe for concurrent use.
type List[T any] struct {
	most        int
	size        int
	front, back *node[T]
	owners      map[string]*owner[T]
	largest     owners[T]
}

// node is one thing in the list.
type node[T any] struct {
	num           uint64
	value         T
	owner         *owner[T]
	before, after *node[T]
	nextOwn       *node[T] // the next newer one of the same owner
}

// owner is an owner with at least one thing in the list.
type owner[T any] struct {
	name           string
	count, place   int // place is the index in the heap
	oldest, newest *node[T]
}

// New makes an empty list of at most the given number of things.
func New[T any](most int) *List[T] {
	return &List[T]{most: most, owners: map[string]*owner[T]{}}
}

// Len is the number of things in the list.
func (l *List[T]) Len() int { return l.size }

// Last is the number of the newest thing, or 0.
func (l *List[T]) Last() uint64 {
	if l.back == nil {
		return 0
	}
	return l.back.num
}

// Add appends a thing. Its number must be above all others. If the list is full, the oldest thing of the owner that now
// has the most is dropped: Add returns its number. The cost grows with the logarithm of the number of owners only.
func (l *List[T]) Add(name string, num uint64, value T) (droppedNum uint64, dropped bool) {
	// Find the owner.
	o := l.owners[name]
	if o == nil {
		o = &owner[T]{name: name}
		l.owners[name] = o
		heap.Push(&l.largest, o)
	}

	// Append.
	n := &node[T]{num: num, value: value, owner: o, before: l.back}
	if l.back == nil {
		l.front = n
	} else {
		l.back.after = n
	}
	l.back = n
	if o.newest == nil {
		o.oldest = n
	} else {
		o.newest.nextOwn = n
	}
	o.newest = n
	l.size++
	o.count++
	heap.Fix(&l.largest, o.place)

	// Make room.
	if l.size <= l.most {
		return 0, false
	}
	old := l.largest[0].oldest
	l.remove(old)
	return old.num, true
}

// TakeOldest removes and returns the oldest thing if its number is at most the given one.
func (l *List[T]) TakeOldest(upTo uint64) (value T, ok bool) {
	n := l.front
	if n == nil || n.num > upTo {
		return value, false
	}
	l.remove(n)
	return n.value, true
}

// remove takes a node out of the list. The node is the oldest one of its owner.
func (l *List[T]) remove(n *node[T]) {
	// Take it out of the order.
	if n.before == nil {
		l.front = n.after
	} else {
		n.before.after = n.after
	}
	if n.after == nil {
		l.back = n.before
	} else {
		n.after.before = n.before
	}
	l.size--

	// Take it from its owner.
	o := n.owner
	o.oldest = n.nextOwn
	o.count--
	if o.oldest == nil {
		heap.Remove(&l.largest, o.place)
		delete(l.owners, o.name)
		return
	}
	heap.Fix(&l.largest, o.place)
}

// All yields the things, oldest first. The list must not change meanwhile.
func (l *List[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for n := l.front; n != nil && yield(&n.value); n = n.after {
		}
	}
}

// Backward yields the things, newest first. The list must not change meanwhile.
func (l *List[T]) Backward() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for n := l.back; n != nil && yield(&n.value); n = n.before {
		}
	}
}

// After yields the things with numbers above the given one, oldest first. The list must not change meanwhile.
func (l *List[T]) After(num uint64) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		// Search from the new end, because most readers are there.
		var first *node[T]
		for n := l.back; n != nil && n.num > num; n = n.before {
			first = n
		}
		for n := first; n != nil && yield(&n.value); n = n.after {
		}
	}
}

// owners is a heap with the owner that has the most on top.
type owners[T any] []*owner[T]

// Len is the number of owners.
func (h owners[T]) Len() int { return len(h) }

// Less puts the owner with more things first.
func (h owners[T]) Less(i, j int) bool { return h[i].count > h[j].count }

// Swap exchanges two owners.
func (h owners[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds an owner at the end.
func (h *owners[T]) Push(x any) {
	o := x.(*owner[T])
	o.place = len(*h)
	*h = append(*h, o)
}

// Pop removes the owner at the end.
func (h *owners[T]) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return o
}
