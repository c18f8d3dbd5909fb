package turns

// maxLook bounds the owners that Pick looks at.
const maxLook = 64

// Queue has things of owners. Owners take turns, and the things of one owner come in the order in which they were added.
// The zero value is ready. It needs a lock around it.
type Queue[T any] struct {
	order  []*owner[T] // those with things; the next one is the first
	owners map[string]*owner[T]
	size   int
}

type owner[T any] struct {
	name   string
	things []T
}

// Len is the number of things.
func (q *Queue[T]) Len() int { return q.size }

// Owners is the number of owners with things.
func (q *Queue[T]) Owners() int { return len(q.order) }

// Add appends a thing to those of its owner.
func (q *Queue[T]) Add(name string, thing T) {
	o := q.owners[name]
	if o == nil {
		if q.owners == nil {
			q.owners = map[string]*owner[T]{}
		}
		o = &owner[T]{name: name}
		q.owners[name] = o
		q.order = append(q.order, o)
	}
	o.things = append(o.things, thing)
	q.size++
}

// Peek is the thing whose turn it is.
func (q *Queue[T]) Peek() (thing T, ok bool) {
	if len(q.order) == 0 {
		return thing, false
	}
	return q.order[0].things[0], true
}

// Next removes the thing whose turn it is.
func (q *Queue[T]) Next() (thing T, ok bool) {
	if len(q.order) == 0 {
		return thing, false
	}
	return q.take(0), true
}

// Find reports whether Pick has something. It looks at the next owners only.
func (q *Queue[T]) Find(may func(name string) bool) (at int, ok bool) {
	for i := range min(len(q.order), maxLook) {
		if may(q.order[i].name) {
			return i, true
		}
	}
	return 0, false
}

// Pick removes the thing of the next owner that may have a turn. The others keep their places.
func (q *Queue[T]) Pick(may func(name string) bool) (thing T, ok bool) {
	at, ok := q.Find(may)
	if !ok {
		return thing, false
	}
	return q.take(at), true
}

// take removes the first thing of an owner, which is then behind all others.
func (q *Queue[T]) take(at int) T {
	// Take the owner out of the order.
	o := q.order[at]
	copy(q.order[1:at+1], q.order[:at])
	q.order[0] = nil
	q.order = q.order[1:]

	// Take its first thing.
	var none T
	thing := o.things[0]
	o.things[0] = none
	o.things = o.things[1:]
	q.size--

	if len(o.things) == 0 {
		delete(q.owners, o.name)
	} else {
		q.order = append(q.order, o)
	}
	return thing
}
