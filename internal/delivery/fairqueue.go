package delivery

import "github.com/gozzard/gozzard"

// task is a task with open attempts.
type task struct {
	seq    gozzard.TaskSeq
	app    string
	open   int
	queue  []*Attempt // to be sent, in this order; those that are not Queued any more are passed over
	queued bool       // in the fair queue
	done   chan struct{}
}

// fairQueue says which task is sent next: apps take turns, and the tasks of one app take turns among themselves. An
// app with a thousand tasks gets as much of the fabric as an app with one task. The zero value is ready.
type fairQueue struct {
	order []*appQueue
	apps  map[string]*appQueue // those in order
}

type appQueue struct {
	app   string
	tasks []*task
}

// add appends a task to the queue of its app.
func (q *fairQueue) add(t *task) {
	a := q.apps[t.app]
	if a == nil {
		if q.apps == nil {
			q.apps = map[string]*appQueue{}
		}
		a = &appQueue{app: t.app}
		q.apps[t.app] = a
		q.order = append(q.order, a)
	}
	a.tasks = append(a.tasks, t)
}

// next removes the task whose turn it is, nil when there is none.
func (q *fairQueue) next() *task {
	if len(q.order) == 0 {
		return nil
	}

	a := q.order[0]
	q.order[0] = nil
	q.order = q.order[1:]
	t := a.tasks[0]
	a.tasks[0] = nil
	if a.tasks = a.tasks[1:]; len(a.tasks) > 0 {
		q.order = append(q.order, a)
	} else {
		delete(q.apps, a.app)
	}

	return t
}
