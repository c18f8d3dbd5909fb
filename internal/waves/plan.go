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

// The decisions of a rollout, without effects.

// order is which priority of a group goes first.
type order int8

const (
	unordered  order = iota // all at once
	ascending               // what others build on first
	descending              // what others build on last
)

// orderOf is the table of actions; ok is false for what is not done in a rollout.
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

// groupOf names the group of a process.
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

// giveWaves numbers the waves: within each group one for every priority there is.
func giveWaves(tasks []record.JobTask, o order) {
	if o == unordered {
		return
	}

	found := map[string]map[int]bool{}
	for i := range tasks {
		t := &tasks[i]
		if found[t.Group] == nil {
			found[t.Group] = map[int]bool{}
		}
		found[t.Group][t.Priority] = true
	}

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

// roundOf is the newest round of a job.
func roundOf(tasks []record.JobTask) int {
	round := 0
	for i := range tasks {
		round = max(round, tasks[i].Round)
	}
	return round
}

// wave is the tasks of one, by id.
type wave []*record.JobTask

// groupsOf sorts what is to be done into groups and their waves: the tasks of the newest round, and whatever is not
// final. Tasks that a retry left out hold nobody back.
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

// unsent are the tasks that no operation carries yet.
func (w wave) unsent() (list []*record.JobTask) {
	for _, t := range w {
		if t.Task == "" && !t.State.Final() {
			list = append(list, t)
		}
	}
	return list
}

// operations are the tasks of each operation that is not finished, all of them and in the order in which it was sent.
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

// failed is the first task that failed, nil when none did.
func (w wave) failed() *record.JobTask {
	for _, t := range w {
		if t.State == record.JobFailed {
			return t
		}
	}
	return nil
}

// holdBack names what a task that is not begun would have had to wait for.
func holdBack(earlier *record.JobTask) string {
	return fmt.Sprintf("priority %d: process %s (%d) failed", earlier.Priority, earlier.Name, earlier.Process)
}

// judge gives a task the verdict of its attempt, which is final. A stop of what does not run had nothing to do.
// Everything else but done has failed, also a start of what runs already: whoever starts it wants it to run as it
// is defined now, and must stop it first.
func judge(t *record.JobTask, a *gozzard.Attempt) {
	code := a.Outcome.Code
	switch {
	case a.State == gozzard.AttemptOK && code == gozzard.CodeOK:
		t.State = record.JobSucceeded
	case a.Action == gozzard.ActionStop && code == gozzard.CodeNotRunning:
		t.State, t.Reason, t.Code, t.Message = record.JobIgnored, record.ReasonVerdict, code, a.Outcome.Message
	case a.State == gozzard.AttemptInterrupted:
		t.State, t.Reason, t.Code, t.Message = record.JobFailed, record.ReasonVerdict, gozzard.CodeInterrupted,
			a.Outcome.Message
	case code == gozzard.CodeOK: // never to be: the state says that it did not go well
		t.State, t.Reason, t.Message = record.JobFailed, record.ReasonInternal,
			fmt.Sprintf("%s did not succeed: %s", a.Action, a.State)
	default:
		t.State, t.Reason, t.Code, t.Message = record.JobFailed, record.ReasonVerdict, code, a.Outcome.Message
	}
}

// repeatable reports whether a retry can send a failed task: not what could not be sent from the start, because it
// lacks something or was refused.
func repeatable(t *record.JobTask) bool {
	return t.Reason != record.ReasonMissing && (t.Reason != record.ReasonVerdict || t.Task != "")
}

// refusal is the outcome that a door or the topology gave an item instead of passing it on, nil when it may be sent.
func refusal(it *record.TopologyItem) *gozzard.Outcome {
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
