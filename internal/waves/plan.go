package waves

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// This file has the decisions about a job, without effects.

// order says which priorities of a group are operated first.
type order int8

const (
	unordered  order = iota // all at once
	ascending               // from the lowest number: processes that others depend on come first
	descending              // from the highest number: processes that others depend on come last
)

// orderOf is the order of an action; ok is false for an action that a job cannot do.
func orderOf(a gozzard.Action) (o order, ok bool) {
	switch a {
	case gozzard.ActionStart, gozzard.ActionReload, gozzard.ActionKill:
		return ascending, true
	case gozzard.ActionStop, gozzard.ActionRestart:
		return descending, true
	case gozzard.ActionHost, gozzard.ActionUnhost:
		return unordered, true
	}
	return unordered, false
}

// groupOf is the name of the group of a process.
func groupOf(g record.Granularity, r *topology.Row) string {
	switch g {
	case record.BySet:
		return "set:" + strconv.Itoa(r.Set)
	case record.ByModule:
		return "module:" + strconv.Itoa(r.Module)
	case record.ByHost:
		if r.Host.Agent != "" {
			return "host:" + string(r.Host.Agent)
		}
		return "host:" + r.Host.Addr().String()
	}
	return "biz:" + strconv.Itoa(r.Biz)
}

// numberWaves numbers the waves: each group has one wave for each of its priorities.
func numberWaves(tasks []record.JobTask, o order) {
	if o == unordered {
		return
	}

	// Find the priorities of each group.
	found := map[string]map[int]bool{}
	for i := range tasks {
		t := &tasks[i]
		if found[t.Group] == nil {
			found[t.Group] = map[int]bool{}
		}
		found[t.Group][t.Priority] = true
	}

	// Number them.
	wave := map[string]map[int]int{}
	for group, set := range found {
		priorities := make([]int, 0, len(set))
		for p := range set {
			priorities = append(priorities, p)
		}
		slices.Sort(priorities)
		if o == descending {
			slices.Reverse(priorities)
		}
		wave[group] = make(map[int]int, len(priorities))
		for i, p := range priorities {
			wave[group][p] = i
		}
	}

	for i := range tasks {
		tasks[i].Wave = wave[tasks[i].Group][tasks[i].Priority]
	}
}

// roundOf is the newest round of a job: 0, and one more for each retry.
func roundOf(tasks []record.JobTask) int {
	round := 0
	for i := range tasks {
		round = max(round, tasks[i].Round)
	}
	return round
}

// wave is the tasks of one wave, by id.
type wave []*record.JobTask

// groupsOf sorts the tasks of the newest round, and all open tasks, into groups and waves. Failed tasks that a retry
// left out are not in it, so they do not prevent later waves.
func groupsOf(tasks []record.JobTask) [][]wave {
	round := roundOf(tasks)
	var list []*record.JobTask
	for i := range tasks {
		if t := &tasks[i]; t.Round == round || !t.State.Final() {
			list = append(list, t)
		}
	}

	slices.SortStableFunc(list, func(a, b *record.JobTask) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.ID, b.ID))
	})

	var groups [][]wave
	for i, t := range list {
		switch {
		case i == 0 || t.Group != list[i-1].Group:
			groups = append(groups, []wave{{t}})
		case t.Wave != list[i-1].Wave:
			last := len(groups) - 1
			groups[last] = append(groups[last], wave{t})
		default:
			waves := groups[len(groups)-1]
			waves[len(waves)-1] = append(waves[len(waves)-1], t)
		}
	}

	return groups
}

// unsent are the tasks without an operation.
func (w wave) unsent() (list []*record.JobTask) {
	for _, t := range w {
		if t.Task == "" && !t.State.Final() {
			list = append(list, t)
		}
	}
	return list
}

// operations are all tasks of each unfinished operation, in the order in which they were sent.
func (w wave) operations() (ops [][]*record.JobTask) {
	place, open := map[gozzard.TaskID]int{}, map[gozzard.TaskID]bool{}
	for _, t := range w {
		if t.Task == "" {
			continue
		}
		i, ok := place[t.Task]
		if !ok {
			i = len(ops)
			place[t.Task] = i
			ops = append(ops, nil)
		}
		ops[i] = append(ops[i], t)
		open[t.Task] = open[t.Task] || !t.State.Final()
	}

	return slices.DeleteFunc(ops, func(op []*record.JobTask) bool { return !open[op[0].Task] })
}

// failed is the first failed task, nil if there is none.
func (w wave) failed() *record.JobTask {
	for _, t := range w {
		if t.State == record.JobFailed {
			return t
		}
	}
	return nil
}

// heldBackBy is the message of a task that is not started because an earlier one failed.
func heldBackBy(earlier *record.JobTask) string {
	return fmt.Sprintf("priority %d: process %s (%d) failed", earlier.Priority, earlier.Name, earlier.Process)
}

// applyVerdict writes the final verdict of an attempt into its task. Stopping a process that does not run had nothing
// to do. Everything else that is not done has failed. That includes a start of a process that already runs: the caller
// wants it to run as it is defined now, and must stop it first.
func applyVerdict(t *record.JobTask, a *gozzard.Attempt) {
	code := a.Outcome.Code
	switch {
	case a.State == gozzard.AttemptOK && code == gozzard.CodeOK:
		t.State = record.JobSucceeded
	case a.Action == gozzard.ActionStop && code == gozzard.CodeNotRunning:
		t.State, t.Reason, t.Code, t.Message = record.JobIgnored, record.ReasonVerdict, code, a.Outcome.Message
	case a.State == gozzard.AttemptInterrupted:
		t.State, t.Reason = record.JobFailed, record.ReasonVerdict
		t.Code, t.Message = gozzard.CodeInterrupted, a.Outcome.Message
	case code == gozzard.CodeOK: // cannot happen: the state says that the attempt failed
		t.State, t.Reason = record.JobFailed, record.ReasonInternal
		t.Message = fmt.Sprintf("%s did not succeed: %s", a.Action, a.State)
	default:
		t.State, t.Reason, t.Code, t.Message = record.JobFailed, record.ReasonVerdict, code, a.Outcome.Message
	}
}

// repeatable reports whether a retry can send a failed task. A task with a missing attribute or a template that cannot be
// rendered, or one that was rejected when the job was created, can never be sent.
func repeatable(t *record.JobTask) bool {
	never := t.Reason == record.ReasonMissing || t.Reason == record.ReasonTemplate
	return !never && (t.Reason != record.ReasonVerdict || t.Task != "")
}

// rejection is the outcome with which a door or the topology rejected an item, nil if it may be sent.
func rejection(it *record.TopologyItem) *gozzard.Outcome {
	if it.Item.Refused != nil {
		return it.Item.Refused
	}
	for i := range it.Item.Targets {
		if it.Item.Targets[i].Refused != nil {
			return it.Item.Targets[i].Refused
		}
	}
	return nil
}
