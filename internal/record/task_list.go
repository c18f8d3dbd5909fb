package record

import (
	"slices"
	"time"

	"github.com/gozzard/gozzard"
)

// TaskState chooses tasks by their progress. A task with a failed attempt can still be running.
type TaskState string

// The states of a filter; "" is every task.
const (
	TaskRunning TaskState = "running" // an attempt has no verdict yet
	TaskFailed  TaskState = "failed"  // an attempt failed
	TaskDone    TaskState = "done"    // every attempt has its verdict, and none failed
)

// TaskFilter chooses tasks; every field that is not empty must fit, and a list fits when one of its values does.
type TaskFilter struct {
	App        string // exactly
	User       string // exactly
	Mine       bool   // only those of the caller
	Since      time.Time
	Actions    []gozzard.Action
	Namespaces []string // patterns with * and ?
	Names      []string // patterns with * and ?
	Hosts      []TaskHost
	State      TaskState
	Before     gozzard.TaskSeq // only tasks with lower numbers; 0: from the newest one
}

// TaskHost is a host of a filter: by its agent, or by an address that was recorded with an attempt. Every field that is
// set may fit.
type TaskHost struct {
	Agent    gozzard.AgentID
	Addr     gozzard.HostAddr
	AnyCloud bool // the cloud of Addr does not count
}

// Is reports whether an attempt was on the host.
func (h *TaskHost) Is(p *TaskPlace) bool {
	if h.Agent != "" && h.Agent == p.Agent {
		return true
	}
	return h.Addr.IP.IsValid() && h.Addr.IP == p.Addr.IP && (h.AnyCloud || h.Addr.Cloud == p.Addr.Cloud)
}

// FitsItem reports whether the filter chooses an item of a task.
func (f *TaskFilter) FitsItem(it *TaskItem) bool {
	has := func(list []string, s string) bool {
		return len(list) == 0 || slices.ContainsFunc(list, func(pattern string) bool {
			return gozzard.MatchGlob(pattern, s)
		})
	}
	return (len(f.Actions) == 0 || slices.Contains(f.Actions, it.Action)) && has(f.Namespaces, it.Key.Namespace) &&
		has(f.Names, it.Key.Name)
}

// FitsPlace reports whether the filter chooses the host of an attempt.
func (f *TaskFilter) FitsPlace(p *TaskPlace) bool {
	return slices.ContainsFunc(f.Hosts, func(h TaskHost) bool { return h.Is(p) })
}

// FitsCounts reports whether the filter chooses the progress of a task.
func (f *TaskFilter) FitsCounts(c TaskCounts) bool {
	switch f.State {
	case TaskRunning:
		return c.Running > 0
	case TaskFailed:
		return c.Failed > 0
	case TaskDone:
		return c.Running == 0 && c.Failed == 0
	}
	return true
}

// TaskItem is what several attempts of a task have in common.
type TaskItem struct {
	Index  int32
	Key    gozzard.Key
	Action gozzard.Action
}

// TaskVerdict counts the attempts of an item that have a state and a code. The code of a success is left out.
type TaskVerdict struct {
	Task  gozzard.TaskSeq
	Item  int32
	State gozzard.AttemptState
	Code  gozzard.Code
	N     int
}

// TaskPlace is the host of an attempt.
type TaskPlace struct {
	Task  gozzard.TaskSeq
	Item  int32
	Agent gozzard.AgentID
	Addr  gozzard.HostAddr
}

// OpenOp is an attempt that is not final.
type OpenOp struct {
	Op    gozzard.OpID
	Agent gozzard.AgentID
}

// TaskCounts are the numbers of attempts by verdict. Noted ones are among those done.
type TaskCounts struct {
	Done, Noted, Failed, Running int
}

// Add counts n attempts of an action.
func (c *TaskCounts) Add(a gozzard.Action, state gozzard.AttemptState, code gozzard.Code, n int) {
	switch {
	case !state.Final():
		c.Running += n
	case state == gozzard.AttemptOK:
		c.Done += n
	case gozzard.NothingToDo(a, code):
		c.Done += n
		c.Noted += n
	default:
		c.Failed += n
	}
}

// TaskSummary is a task in a list.
type TaskSummary struct {
	Task   gozzard.Task
	Items  []TaskItem
	Counts TaskCounts
}

// TaskPage is a part of a list of tasks, the newest first. It may have fewer tasks than asked for, or none, although
// there are more: Next is the value of TaskFilter.Before for the rest, 0 at the end.
type TaskPage struct {
	Tasks []TaskSummary
	Next  gozzard.TaskSeq
}
