package gse

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// The values of status in the result of a script.
const (
	scriptRunning   = 1 // also while it waits: clients take 0 for an end
	scriptFinished  = 2
	scriptTimeout   = 3
	scriptFailed    = 5
	scriptRestarted = 6 // the agent was restarted in the middle
)

// stepRow is the result of one step on one host.
type stepRow struct {
	AgentID     string `json:"bk_agent_id"`
	ContainerID string `json:"bk_container_id"`
	StepID      int    `json:"atomic_task_id"`
	Status      int    `json:"status"`
	ErrorCode   int    `json:"error_code"`
	ErrorMsg    string `json:"error_msg"`
	StartTime   int64  `json:"start_time"` // milliseconds
	EndTime     int64  `json:"end_time"`
	Exit        int    `json:"script_exit_code"`
	Tag         string `json:"tag"`
	Screen      string `json:"screen"`
}

// wantedSteps are the steps that a poll asks for, by host; nil means all of every host.
type wantedSteps map[string][]wantedStep

// wantedStep is a step and the part of its output that a poll asks for.
type wantedStep struct{ id, offset, limit int }

// scriptResult is get_execute_script_result.
func (s *server) scriptResult(ctx context.Context, c *blueking.Call) (any, error) {
	id := c.Body.Get("task_id")
	task := taskname.Parse(id.Str())
	wanted := readWanted(c.Body.Get("agent_tasks"))
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	res, err := s.taskOf(ctx, c, task)
	if err != nil {
		return nil, err
	}
	if res.Task.Door != doorScript {
		return nil, gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}

	rows, specs := []stepRow{}, map[string]*gozzard.Spec{}
	for i := range res.Attempts {
		a := &res.Attempts[i]
		steps, asked := wanted[a.ResultKey]
		if wanted != nil && !asked {
			continue
		}
		if len(steps) == 0 {
			steps = allSteps(a, specs)
		}
		for _, w := range steps {
			rows = append(rows, newStepRow(c.Words, a, w))
		}
	}
	return struct {
		Result []stepRow `json:"result"`
	}{rows}, nil
}

// taskOf is a task of the caller. The answer is the same for an unknown id and for an id of another app's task.
func (s *server) taskOf(ctx context.Context, c *blueking.Call, id gozzard.TaskID) (record.TaskResults, error) {
	res, err := s.plane.Results(ctx, c.Caller, id)
	if err != nil && gozzard.KindOf(err) == gozzard.ErrNotFound {
		err = gozzard.Errorf(gozzard.ErrNotFound, "no such task")
	}
	return res, err
}

func readWanted(list strictjson.Value) wantedSteps {
	if !list.Given() {
		return nil
	}
	out := wantedSteps{}
	list.OptList(gozzard.MaxScriptHosts, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		id, steps := e.Get("bk_agent_id"), e.Get("atomic_tasks")
		agent := readAgent(&id)
		name := agent.name(formV2)
		out[name] = append([]wantedStep{}, out[name]...)
		steps.OptList(gozzard.MaxScriptSteps, func(s *strictjson.Value) {
			if !s.Object() {
				return
			}
			step, offset, limit := s.Get("atomic_task_id"), s.Get("offset"), s.Get("limit")
			out[name] = append(out[name], wantedStep{int(step.OptInt(0, 0, maxStepID)), int(offset.OptInt(0, 0, maxCloud)),
				int(limit.OptInt(0, 0, maxCloud))})
		})
		if len(out[name]) > gozzard.MaxScriptSteps { // one small request must not ask for the same output a thousand times
			steps.Fault("ask for more than %d steps of one host", gozzard.MaxScriptSteps)
		}
	})
	return out
}

// allSteps are all steps of the script of an attempt.
func allSteps(a *gozzard.Attempt, known map[string]*gozzard.Spec) (steps []wantedStep) {
	spec := known[string(a.Spec)]
	if spec == nil {
		var err error
		if spec, err = gozzard.DecodeSpec(a.Spec); err != nil || spec.Script == nil {
			return []wantedStep{{}}
		}
		known[string(a.Spec)] = spec
	}
	for i := range spec.Script.Steps {
		steps = append(steps, wantedStep{id: spec.Script.Steps[i].ID})
	}
	return steps
}

// newStepRow is the row of one step of an attempt.
func newStepRow(words blueking.Words, a *gozzard.Attempt, w wantedStep) stepRow {
	row := stepRow{AgentID: a.ResultKey, StepID: w.id, Exit: -1, Status: scriptFailed}
	number, text := words.Verdict(a, a.Key.Name)
	switch {
	case number == blueking.EntryInWork:
		row.Status, row.Exit, row.ErrorMsg = scriptRunning, 0, text
		return row
	case a.State == gozzard.AttemptInterrupted:
		row.Status = scriptRestarted
	}
	row.ErrorCode, row.ErrorMsg = number, text
	step := stepOf(a, w.id)
	if step == nil {
		return row
	}

	row.StartTime, row.EndTime, row.Exit = step.Began, step.Ended, step.Exit
	row.Screen = part(step.Output, w.offset, w.limit)
	row.ErrorCode, row.ErrorMsg = blueking.EntryFailed, words.Message(step.Message)
	switch step.State {
	case gozzard.StepOK:
		row.Status, row.ErrorCode, row.ErrorMsg = scriptFinished, blueking.EntryOK, "success"
		if step.LeftOut > 0 {
			row.ErrorMsg = words.Message(fmt.Sprintf("success; %d bytes in the middle of the output were left out", step.LeftOut))
		}
	case gozzard.StepTimeout:
		row.Status = scriptTimeout
	}
	return row
}

// stepOf is a step of a script that has ended, nil if there is none with this id.
func stepOf(a *gozzard.Attempt, id int) *gozzard.StepResult {
	if a.Outcome.Script == nil {
		return nil
	}
	for i := range a.Outcome.Script.Steps {
		if s := &a.Outcome.Script.Steps[i]; s.ID == id {
			return s
		}
	}
	return nil
}

// part is a part of a text, in whole characters: a client goes on where the last part ended. A limit of 0 means the rest.
func part(s string, offset, limit int) string {
	start := func(at int) int {
		for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
			at--
		}
		return at
	}
	from := start(min(offset, len(s)))
	if limit == 0 || limit >= len(s)-from {
		return s[from:]
	}
	return s[from:max(start(from+limit), from)]
}
