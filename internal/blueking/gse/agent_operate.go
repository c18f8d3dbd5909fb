package gse

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/taskname"
)

// doorRestart is the form of requests that restart agents.
const doorRestart = "gse.restart"

// typeRestart is the only type of operate_agent that clients send.
const typeRestart = 1

// agentsOperated is the answer of operate_agent. GSE has results only.
type agentsOperated struct {
	Missing []string `json:"results"` // agents that are not known or not connected
	TaskID  string   `json:"task_id"` // for get_task_state
}

// operateAgent is operate_agent: it restarts agents.
func (s *server) operateAgent(ctx context.Context, c *blueking.Call) (any, error) {
	spec := readRestart(c)
	places := s.readPlaces(&c.Body)
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%s", err)
	}

	// Find the agents that cannot be reached. Their attempts say why, so they are part of the task.
	out := agentsOperated{Missing: []string{}}
	targets := make([]gozzard.Target, len(places))
	for i := range places {
		p := &places[i]
		targets[i] = p.target
		targets[i].ResultKey = p.name(formV2)
		if host, known := s.plane.Resolve(c.Caller, p.target); !known || !host.Online {
			out.Missing = append(out.Missing, targets[i].ResultKey)
		}
	}

	task, err := s.plane.Operate(ctx, s.operation(c, doorRestart, gozzard.RestartItem(spec, targets)))
	if err != nil {
		return nil, err
	}
	out.TaskID = taskname.Of(task.ID)
	return out, nil
}

// readRestart reads everything of a request but its agents.
func readRestart(c *blueking.Call) gozzard.RestartSpec {
	kind, current, sign := c.Body.Get("type"), c.Body.Get("current_version"), c.Body.Get("target_version_sign")
	timeout, force, remark := c.Body.Get("timeout"), c.Body.Get("force"), c.Body.Get("remark")

	if n := kind.Int(0, maxCloud); n != typeRestart && kind.Given() {
		kind.Fault("must be 1 (restart): agents are upgraded by releases (gozzard release roll) and stopped on their hosts")
	}
	if sign.OptStr() != "" {
		sign.Fault("must be empty: a restart installs nothing; agents are upgraded by releases (gozzard release roll)")
	}

	most := int64(gozzard.MaxRestartWait / time.Second)
	spec := gozzard.RestartSpec{Version: current.OptStr(), Wait: int(timeout.OptInt(0, 0, most)), Force: force.OptBool(false),
		Remark: remark.OptStr()}
	if spec.Wait == 0 {
		spec.Wait = int(gozzard.DefaultRestartWait / time.Second)
	}
	return spec
}
