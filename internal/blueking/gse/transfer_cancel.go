package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// terminateTransfer is async_terminate_transfer_file. What was not sent to its host gets 126. A file that was sent is written
// as a whole or not at all, and its row says which. As with polls, an unknown id, an id of another app's task and the id of a
// task that is no transfer get the same answer.
func (s *server) terminateTransfer(ctx context.Context, c *blueking.Call) (any, error) {
	id, agents := c.Body.Get("task_id"), c.Body.Get("agents")
	task := taskname.Parse(id.Str())
	wanted := readWantedAgents(agents)
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	// Reject hosts that the task does not have: the caller would believe that they are cancelled.
	res, err := s.taskOf(ctx, c, task)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range res.Attempts {
		known[res.Attempts[i].ResultKey] = true
	}
	for name := range wanted {
		if res.Task.Door == doorTransfer && !known[name] {
			agents.Fault("%s is no target of this task; nothing was cancelled", gozzard.Clip(name, 100))
			return nil, c.Faults.Err()
		}
	}

	q := &record.Cancel{Caller: c.Caller, Task: task, Door: doorTransfer, RequestHash: c.Hash}
	if wanted != nil {
		q.Only = func(a *gozzard.Attempt) bool { return wanted[a.ResultKey] }
	}
	if res, err = s.plane.CancelTask(ctx, q); err != nil {
		return nil, err
	}
	return taskResult{Result: taskData{TaskID: taskname.Of(res.Task.ID)}}, nil
}
