package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/taskname"
)

// The states of a task as a whole.
const (
	statePending   = "pending"
	stateExecuting = "executing"
	stateTimeout   = "timeout"
	stateFailed    = "failed"
	stateSuccessed = "successed"
)

// taskState is the state of a task, and its hosts by what happened there.
type taskState struct {
	State     string   `json:"state"`
	Successed []string `json:"successed_agents"`
	Timeout   []string `json:"timeout_agents"`
	Failed    []string `json:"failed_agents"`
	Pending   []string `json:"pending_agents"` // their outcome is not known yet
	Offline   []string `json:"offline_agents"`
	Restarted []string `json:"restarted_agents"` // the agent was restarted in the middle
}

// state is get_task_state.
func (s *server) state(ctx context.Context, c *blueking.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := taskname.Parse(id.Str())
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	res, err := s.taskOf(ctx, c, task)
	if err != nil {
		return nil, err
	}
	return struct {
		Result taskState `json:"result"`
	}{stateOfTask(res.Task.Door, res.Attempts)}, nil
}

// stateOfTask sorts the hosts of a task.
func stateOfTask(door string, attempts []gozzard.Attempt) taskState {
	t := taskState{Successed: []string{}, Timeout: []string{}, Failed: []string{}, Pending: []string{}, Offline: []string{},
		Restarted: []string{}}
	waiting := 0
	for i := range attempts {
		a := &attempts[i]
		if a.State == gozzard.AttemptPending {
			waiting++
		}
		list := t.listOf(a)
		*list = append(*list, agentName(door, a))
	}

	switch {
	case waiting > 0 && waiting == len(attempts):
		t.State = statePending
	case len(t.Pending) > 0:
		t.State = stateExecuting
	case len(t.Timeout) > 0:
		t.State = stateTimeout
	case len(t.Failed)+len(t.Offline)+len(t.Restarted) > 0:
		t.State = stateFailed
	default:
		t.State = stateSuccessed
	}
	return t
}

// listOf is the list to which the host of an attempt belongs.
func (t *taskState) listOf(a *gozzard.Attempt) *[]string {
	switch a.State {
	case gozzard.AttemptPending, gozzard.AttemptDispatched, gozzard.AttemptUnknown:
		return &t.Pending
	case gozzard.AttemptOK:
		return &t.Successed
	case gozzard.AttemptInterrupted:
		return &t.Restarted
	}
	switch {
	case a.Outcome.Code == gozzard.CodeUnreachable || a.Outcome.Code == gozzard.CodeExpired:
		return &t.Offline
	case timedOut(a):
		return &t.Timeout
	}
	return &t.Failed
}

// timedOut reports whether a step of a script was killed because its time was over.
func timedOut(a *gozzard.Attempt) bool {
	if a.Outcome.Script == nil {
		return false
	}
	for i := range a.Outcome.Script.Steps {
		if a.Outcome.Script.Steps[i].State == gozzard.StepTimeout {
			return true
		}
	}
	return false
}

// agentName is the name of the host of an attempt: as the caller of a script, a transfer or a restart named it, else the id of its agent.
func agentName(door string, a *gozzard.Attempt) string {
	switch {
	case door == doorScript || door == doorTransfer || door == doorRestart:
		return a.ResultKey
	case a.Agent != "":
		return string(a.Agent)
	}
	return a.Addr.String()
}
