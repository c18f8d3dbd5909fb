package notify

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/taskname"
)

// lookAtHosts records which hosts were lost and which are back, as events. After the start of a server all hosts need
// some time to connect.
func (e *Engine) lookAtHosts(ctx context.Context, now time.Time) error {
	// Find them.
	grace := max(e.o.Settings.HostLost, 30*time.Second)
	lost := map[gozzard.AgentID]time.Time{}
	var back []gozzard.AgentID
	var events []record.Event
	known := map[gozzard.AgentID]bool{}
	for _, h := range e.o.Fleet.Hosts(gozzard.Everything()) {
		id := h.Info.Agent
		known[id] = true
		since, was := e.state.Lost[id]
		switch {
		case h.Online && was:
			back = append(back, id)
			events = append(events, hostEvent(&h.Info, gozzard.EventHostBack, now,
				"the agent reports again, after "+now.Sub(since).Round(time.Second).String()))
		case !h.Online && !was && !e.o.Gone(id) && now.Sub(e.began) >= grace && now.Sub(h.LastSeen) >= e.o.Settings.HostLost:
			lost[id] = h.LastSeen
			events = append(events, hostEvent(&h.Info, gozzard.EventHostLost, now,
				"the agent is silent since "+h.LastSeen.UTC().Format(time.RFC3339)))
		}
	}
	for id := range e.state.Lost {
		if !known[id] || e.o.Gone(id) {
			back = append(back, id)
		}
	}
	if len(lost)+len(back) == 0 {
		return nil
	}

	// Record them. If the server ends in between, the events come again, and change nothing.
	for from := 0; from < len(events); from += readRows {
		if _, err := e.o.Store.AddEvents(ctx, events[from:min(from+readRows, len(events))]); err != nil {
			return err
		}
	}
	e.o.Plane.NotifyEvents()
	if err := e.o.Store.SaveLost(ctx, lost, back); err != nil {
		return err
	}
	for id, since := range lost {
		e.state.Lost[id] = since
	}
	for _, id := range back {
		delete(e.state.Lost, id)
	}
	return nil
}

func hostEvent(h *gozzard.HostInfo, kind gozzard.EventKind, now time.Time, text string) record.Event {
	ev := record.Event{Agent: h.Agent, Event: gozzard.Event{Kind: kind, At: now.UnixMilli(), Message: text}}
	if len(h.Addrs) > 0 {
		ev.Addr = h.Addrs[0]
	}
	return ev
}

// How many rows of the audit are read at once, and how many times in one step.
const (
	auditRows  = 500
	auditReads = 20
)

// lookAtTasks records tasks that failed as events. The audit has a row for each task that ended. It returns how far it
// came.
func (e *Engine) lookAtTasks(ctx context.Context) (audit int64, err error) {
	audit = e.state.Audit
	for range auditReads {
		next, err := e.lookAtRows(ctx, audit)
		if err != nil || next == audit {
			return audit, err
		}
		audit = next
	}
	return audit, nil
}

// lookAtRows does so for the rows that are read at once.
func (e *Engine) lookAtRows(ctx context.Context, after int64) (last int64, err error) {
	rows, err := e.o.Store.AuditAfter(ctx, after, auditRows)
	if err != nil || len(rows) == 0 {
		return after, err
	}

	// Find those that failed.
	var events []record.Event
	var tasks []gozzard.TaskSeq
	var outcomes []string
	for i := range rows {
		r := &rows[i]
		counts, ended := strings.CutPrefix(r.Act, "verdicts:")
		failed := failedOf(counts)
		if !ended || failed == 0 {
			continue
		}
		ev := record.Event{Task: taskname.Parse(r.TaskID), App: r.Caller.App, User: r.Caller.User}
		ev.Kind, ev.At = gozzard.EventTaskFailed, r.At.UnixMilli()
		ev.Message = fmt.Sprintf("%d of %d attempts failed", failed, r.Targets)
		events, tasks = append(events, ev), append(tasks, gozzard.TaskSeq(r.Ref))
		outcomes = append(outcomes, r.Outcome)
	}
	if len(events) == 0 {
		return rows[len(rows)-1].Seq, nil
	}

	// Record those that people care for, with the position at the end of the step: if the server ends in between, they come again.
	if events, err = e.ofChanges(ctx, events, tasks, outcomes); err != nil {
		return 0, err
	}
	if len(events) > 0 {
		if _, err := e.o.Store.AddEvents(ctx, events); err != nil {
			return 0, err
		}
		e.o.Plane.NotifyEvents()
	}
	return rows[len(rows)-1].Seq, nil
}

// ofChanges says which process failed tasks are about, if it is one, and leaves out those that only asked: nobody is paged because a
// question has no answer. A task that is gone by now has no items.
func (e *Engine) ofChanges(ctx context.Context, events []record.Event, tasks []gozzard.TaskSeq, outcomes []string) (
	told []record.Event, err error) {
	items, err := e.o.Store.TaskItems(ctx, tasks)
	if err != nil {
		return nil, err
	}
	for i, ev := range events {
		list := items[tasks[i]]
		if why := whyFailed(outcomes[i], list); why != "" {
			ev.Message += ": " + why
		}
		if len(list) == 0 {
			told = append(told, ev)
			continue
		}

		action := list[0].Action
		if action.ReadOnly() {
			continue
		}
		did := action.String()
		if action == gozzard.ActionConfigure { // nobody types the name of that action
			did = "writing files"
		}
		ev.Key, ev.Message = commonKey(list), did+": "+ev.Message
		told = append(told, ev)
	}
	return told, nil
}

// failedOf counts the attempts that failed in the counts of an audit row, such as "ok=3,failed=1,noted=2".
func failedOf(counts string) (failed int) {
	for _, part := range strings.Split(counts, ",") {
		state, text, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(text)
		if err == nil && state != gozzard.AttemptOK.String() && state != "noted" {
			failed += n
		}
	}
	return failed
}

// failedBy says how many attempts failed for a reason.
var failedBy = map[gozzard.Code]string{
	gozzard.CodeAlreadyRunning:    "%d already running",
	gozzard.CodeNotRunning:        "%d not running",
	gozzard.CodeCheckFailed:       "%d with a process in another state than wanted",
	gozzard.CodeCommandFailed:     "%d with a failed command",
	gozzard.CodeNoDefinition:      "%d without a definition",
	gozzard.CodeRefused:           "%d rejected by the host",
	gozzard.CodeUnknownAction:     "%d with an unknown action",
	gozzard.CodeAlreadyRegistered: "%d already registered",
	gozzard.CodeUnreachable:       "%d on an unreachable host",
	gozzard.CodeInterrupted:       "%d interrupted by an end of the agent",
	gozzard.CodeSuperseded:        "%d replaced by a newer operation",
	gozzard.CodeExpired:           "%d expired before the host had it",
	gozzard.CodeCancelled:         "%d cancelled before it was sent",
	gozzard.CodeBusy:              "%d expired while others ran",
}

// whyFailed says in words why the attempts of a task failed. outcome has the counts by code, such as "ok=3,unreachable=1".
// Attempts that had nothing to do have not failed.
func whyFailed(outcome string, items []record.TaskItem) string {
	var why []string
	for part := range strings.SplitSeq(outcome, ",") {
		name, text, _ := strings.Cut(part, "=")
		code := gozzard.Code(name)
		n, err := strconv.Atoi(text)
		if err != nil || failedBy[code] == "" {
			continue
		}
		if !slices.ContainsFunc(items, func(i record.TaskItem) bool { return gozzard.NothingToDo(i.Action, code) }) {
			why = append(why, fmt.Sprintf(failedBy[code], n))
		}
	}
	return strings.Join(why, "; ")
}

// commonKey is what the items of a task have in common.
func commonKey(list []record.TaskItem) gozzard.Key {
	key := list[0].Key
	for i := range list {
		if list[i].Key.Namespace != key.Namespace {
			return gozzard.Key{}
		}
		if list[i].Key.Name != key.Name {
			key.Name = ""
		}
	}
	return key
}
