package control

// turns says whose task is sent next: apps take turns, and the tasks of one app do among themselves. An app with a
// thousand tasks under way gets as much of the fabric as one with a single one, and no more. The zero value is
// ready.
type turns struct {
	order []*appTurn
	apps  map[string]*appTurn // that are in order
}

type appTurn struct {
	app   string
	tasks []*taskState
}

// add puts a task at the end of its app's line.
func (q *turns) add(t *taskState) {
	a := q.apps[t.app]
	if a == nil {
		if q.apps == nil {
			q.apps = map[string]*appTurn{}
		}
		a = &appTurn{app: t.app}
		q.apps[t.app] = a
		q.order = append(q.order, a)
	}
	a.tasks = append(a.tasks, t)
}

// next takes the task whose turn it is, nil when there is none.
func (q *turns) next() *taskState {
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
