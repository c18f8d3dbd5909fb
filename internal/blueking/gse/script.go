package gse

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// doorScript is the form of requests that run scripts.
const doorScript = "gse.script"

// TaskNamespace is the namespace of scripts, which GSE does not assign to a business. A request can name one in bk_biz_id.
const TaskNamespace = "gse-task"

const (
	maxStepSeconds     = gozzard.MaxScriptSeconds
	defaultStepSeconds = 1000 // what GSE uses if a request has no limit
	maxStepID          = 1 << 20
)

type taskResult struct {
	Result taskData `json:"result"`
}

// runScript is async_execute_script.
func (s *server) runScript(ctx context.Context, c *blueking.Call) (any, error) {
	namespace := readTaskNamespace(&c.Body)
	agents := s.readScriptAgents(c.Body.Get("agents"))
	script := readScript(&c.Body)
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	script.Output = gozzard.ScriptOutput(len(agents))
	if err := script.Validate(); err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%s", err)
	}
	task, err := s.plane.Operate(ctx, s.operation(c, doorScript, scriptItems(namespace, agents, script)...))
	if err != nil {
		return nil, err
	}
	return taskResult{Result: taskData{TaskID: taskname.Of(task.ID)}}, nil
}

// readTaskNamespace reads the business of a task, if the request names one.
func readTaskNamespace(v *strictjson.Value) string {
	if biz := v.Get("bk_biz_id"); biz.Given() {
		return gozzard.BusinessNamespace(int(biz.Int(1, maxCloud)))
	}
	return TaskNamespace
}

// taskAgent is a host of a task, with the account that acts there.
type taskAgent struct {
	place
	account string
}

// readScriptAgents reads the hosts of a script, each once. A password in the request is not used and not stored.
func (s *server) readScriptAgents(list strictjson.Value) (agents []taskAgent) {
	seen := map[hostID]bool{}
	n := list.List(min(s.maxHosts, gozzard.MaxScriptHosts), func(e *strictjson.Value) {
		a, ok := readTaskAgent(e)
		if !ok {
			return
		}
		if id := a.hostID(); seen[id] && a.target.Refused == nil {
			e.Fault("names a host that is in the list before")
		} else {
			seen[id] = true
		}
		agents = append(agents, a)
	})
	if n == 0 && list.IsList() {
		list.Fault("at least one agent is required")
	}
	return agents
}

// readTaskAgent reads {bk_agent_id, bk_container_id, user}.
func readTaskAgent(e *strictjson.Value) (taskAgent, bool) {
	if !e.Object() {
		return taskAgent{}, false
	}
	id, user := e.Get("bk_agent_id"), e.Get("user")
	a := taskAgent{place: readAgent(&id), account: user.Str()}
	if a.account != "" {
		if err := gozzard.ValidateName(a.account); err != nil {
			user.Fault("%v", err)
		}
	}
	if isContainer(e) {
		a.target.Refused = &gozzard.Outcome{Code: gozzard.CodeRefused,
			Message: "containers cannot be reached: leave bk_container_id out to reach the host"}
	}
	return a, true
}

// isContainer reports whether an agent of a request is a container. Clients send zeros for hosts.
func isContainer(e *strictjson.Value) bool {
	container := e.Get("bk_container_id")
	return strings.Trim(container.OptStr(), "0") != ""
}

// readScript reads the texts and the steps of a script.
func readScript(v *strictjson.Value) *gozzard.ScriptSpec {
	s := &gozzard.ScriptSpec{}
	texts, tasks := v.Get("scripts"), v.Get("atomic_tasks")
	texts.OptList(gozzard.MaxScriptTexts, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		name, dir, content := e.Get("script_name"), e.Get("script_store_dir"), e.Get("script_content")
		base := name.Str()
		if strings.Contains(base, "/") {
			name.Fault("must be a file name without a folder")
		}
		s.Texts = append(s.Texts, gozzard.ScriptText{Path: path.Join(dir.Str(), base), Content: []byte(content.Str())})
	})

	n := tasks.List(gozzard.MaxScriptSteps, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		id, command, timeout := e.Get("atomic_task_id"), e.Get("command"), e.Get("timeout_seconds")
		step := gozzard.ScriptStep{ID: int(id.OptInt(0, 0, maxStepID)), Command: command.Str(),
			Seconds: int(timeout.OptInt(0, 0, maxStepSeconds))}
		if step.Seconds == 0 {
			step.Seconds = defaultStepSeconds
		}
		s.Steps = append(s.Steps, step)
	})
	if n == 0 && tasks.IsList() {
		tasks.Fault("at least one task is required")
	}
	readRelations(v.Get("atomic_tasks_relations"), s)
	return s
}

// readRelations reads which steps follow which, and puts the steps into such an order.
func readRelations(list strictjson.Value, s *gozzard.ScriptSpec) {
	list.OptList(gozzard.MaxScriptSteps, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		id, before := e.Get("atomic_task_id"), e.Get("atomic_task_id_idx")
		of := int(id.OptInt(0, 0, maxStepID))
		at := slices.IndexFunc(s.Steps, func(x gozzard.ScriptStep) bool { return x.ID == of })
		if at < 0 {
			id.Fault("is not the id of one of the atomic tasks")
			return
		}
		before.OptList(gozzard.MaxScriptSteps, func(b *strictjson.Value) {
			s.Steps[at].After = append(s.Steps[at].After, int(b.Int(0, maxStepID)))
		})
	})

	ordered, ok := inOrder(s.Steps)
	if !ok {
		list.Fault("name a task that does not exist, or tasks that wait for each other")
		return
	}
	s.Steps = ordered
}

// inOrder puts steps behind those that they follow, and else leaves their order. It fails if that is not possible.
func inOrder(steps []gozzard.ScriptStep) (ordered []gozzard.ScriptStep, ok bool) {
	done := map[int]bool{}
	for waiting := slices.Clone(steps); len(waiting) > 0; {
		next := slices.IndexFunc(waiting, func(s gozzard.ScriptStep) bool {
			return !slices.ContainsFunc(s.After, func(id int) bool { return !done[id] })
		})
		if next < 0 {
			return nil, false
		}
		ordered = append(ordered, waiting[next])
		done[waiting[next].ID] = true
		waiting = slices.Delete(waiting, next, next+1)
	}
	return ordered, true
}

// scriptItems are the items of an operation: one for each account.
func scriptItems(namespace string, agents []taskAgent, script *gozzard.ScriptSpec) (items []gozzard.Item) {
	at := map[string]int{}
	for _, a := range agents {
		i, known := at[a.account]
		if !known {
			i, at[a.account] = len(items), len(items)
			spec := &gozzard.Spec{Script: script}
			spec.Identity.User = a.account
			items = append(items, gozzard.Item{Action: gozzard.ActionScript, Key: gozzard.ScriptKey(namespace, a.account),
				Spec: spec})
		}
		t := a.target
		if t.Refused != nil { // a container: a retry of this task must not run the script on its host
			t = gozzard.Target{Refused: t.Refused}
		}
		t.ResultKey = a.name(formV2)
		items[i].Targets = append(items[i].Targets, t)
	}
	return items
}
