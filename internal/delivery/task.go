package delivery

import "github.com/gozzard/gozzard"

// task is a task with open attempts.
type task struct {
	seq    gozzard.TaskSeq
	app    string
	open   int
	queue  []*Attempt // to be sent, in this order; those that are not Queued any more are passed over
	queued bool       // in the queue of tasks with something to send
	done   chan struct{}
}
