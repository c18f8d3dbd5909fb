package gse

import (
	"context"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// entry is the result of one process on one host. Content is JSON in a string, which clients parse again.
type entry struct {
	ErrorCode int    `json:"error_code"`
	ErrorMsg  string `json:"error_msg"`
	Content   string `json:"content"`
}

// result answers a poll of a task. The answer is the same for an unknown id, an id of another app's task and any other
// text.
func (s *server) result(ctx context.Context, c *blueking.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := taskname.Parse(id.Str())

	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	res, err := s.plane.Results(ctx, c.Caller, task)
	if err != nil {
		if gozzard.KindOf(err) == gozzard.ErrNotFound {
			return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
		}
		return nil, err
	}

	return render(c.Words, &res), nil
}

// render makes the entries of all attempts. They are all there from the first poll on.
func render(w blueking.Words, res *record.TaskResults) entries {
	out := make(entries, len(res.Attempts))
	var specs blueking.Identities
	for i := range res.Attempts {
		a := &res.Attempts[i]
		id := specs.Of(a)
		if id.ProcName == "" {
			id.ProcName = a.Key.Name
		}
		number, text := w.Verdict(a, id.ProcName)
		e := entry{ErrorCode: number, ErrorMsg: text}
		if number != blueking.EntryInWork {
			e.Content = content(res.Task.Door, a, id, text)
		}
		out[a.ResultKey] = e
	}

	return out
}

// content is the JSON in the string of a finished entry.
func content(door string, a *gozzard.Attempt, id gozzard.Identity, text string) string {
	switch a.Action {
	case gozzard.ActionRegister, gozzard.ActionUpdate, gozzard.ActionUnregister:
		return ""
	case gozzard.ActionQuery:
		name := a.Key.Name
		if door == doorV1 {
			name = id.ProcName
		}
		return string(blueking.EncodeContent(blueking.NewQueryContent(a, id.ProcName, name)))
	}

	v := blueking.ControlValue{ProcName: id.ProcName, SetupPath: id.SetupPath, Result: text}

	if door != doorV1 {
		v.IsAuto = &a.Outcome.Hosted
		v.AgentID = string(a.Agent)
	}

	return string(blueking.EncodeContent(blueking.ControlContent{Value: [1]blueking.ControlValue{v}}))
}
