package control

import (
	"context"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// The work of one list of tasks. Where a limit is reached the page ends, and its reader goes on from there.
const (
	maxTaskRows    = 200       // tasks that are read together
	maxTaskScan    = 2000      // tasks that are looked at
	maxTaskTargets = 100_000   // targets of those whose attempts are read; one more task may be above it
	taskSkew       = time.Hour // tasks are in the order of their commits: their times may differ from it by less
)

// Tasks lists the tasks that a caller may read (Results) and a filter chooses, the newest first, at most limit.
func (p *Plane) Tasks(ctx context.Context, caller gozzard.Caller, f record.TaskFilter, limit int) (record.TaskPage, error) {
	l := taskList{p: p, caller: caller, f: &f, limit: limit, sees: p.sight(caller.Rights)}
	if f.App != "" && !caller.ReadsTasksOf(f.App) || f.Mine && f.User != "" && f.User != caller.User {
		return l.page, nil
	}
	if f.Mine {
		f.User = caller.User
	}

	// A person that sees everything reads the tasks of all apps; without an app, users are chosen here.
	app, user := caller.App, f.User
	switch {
	case f.App != "":
		app = f.App
	case !f.Mine && caller.ReadsTasksOf(""):
		app, user = "", ""
	}

	at := f.Before
	for seen := 0; seen < maxTaskScan; {
		rows := min(max(limit-len(l.page.Tasks), 20), maxTaskRows)
		tasks, err := p.o.Store.TasksOf(ctx, app, user, at, rows)
		if err != nil {
			return record.TaskPage{}, err
		}
		ended, err := l.addAll(ctx, tasks)
		if err != nil || ended {
			return l.page, err
		}
		if len(tasks) < rows {
			l.page.Next = 0
			return l.page, nil
		}
		seen += len(tasks)
		at = tasks[len(tasks)-1].Seq
	}

	return l.page, nil
}

// taskList is a list of tasks that is being made.
type taskList struct {
	p      *Plane
	caller gozzard.Caller
	f      *record.TaskFilter
	limit  int
	sees   func(gozzard.AgentID, gozzard.HostAddr, string) bool
	read   int // targets whose attempts were read
	page   record.TaskPage
}

// addAll looks at tasks in their order, in parts with a bounded number of targets. ended is true when the page is
// complete.
func (l *taskList) addAll(ctx context.Context, tasks []gozzard.Task) (ended bool, err error) {
	for len(tasks) > 0 {
		n, targets := 0, 0
		for n < len(tasks) && (n == 0 || targets+tasks[n].Targets <= maxTaskTargets/10) {
			targets += tasks[n].Targets
			n++
		}
		ended, err = l.add(ctx, tasks[:n])
		if err != nil || ended {
			return ended, err
		}
		tasks = tasks[n:]
	}
	return false, nil
}

// add looks at some tasks, which are read together.
func (l *taskList) add(ctx context.Context, tasks []gozzard.Task) (ended bool, err error) {
	// Leave out what the items already exclude.
	items, err := l.p.o.Store.TaskItems(ctx, seqsOf(tasks))
	if err != nil {
		return false, err
	}
	parts := make(map[gozzard.TaskSeq]*taskParts, len(tasks))
	var chosen, hidden []gozzard.TaskSeq
	for i := range tasks {
		t := &tasks[i]
		part := newTaskParts(l.f, items[t.Seq])
		if len(part.fits) == 0 || !l.f.Since.IsZero() && t.At.Before(l.f.Since) ||
			l.f.Mine && t.Caller.User != l.caller.User || l.f.User != "" && t.Caller.User != l.f.User {
			continue
		}
		parts[t.Seq] = part
		chosen = append(chosen, t.Seq)
		if part.known = readsWhole(l.caller, t); !part.known || len(l.f.Hosts) > 0 {
			hidden = append(hidden, t.Seq)
		}
		l.read += t.Targets
	}

	// Read their hosts where rights or the filter depend on them, and their verdicts.
	if err := l.readPlaces(ctx, hidden, parts); err != nil {
		return false, err
	}
	verdicts, err := l.p.o.Store.TaskVerdicts(ctx, chosen)
	if err != nil {
		return false, err
	}
	for _, v := range verdicts {
		if part := parts[v.Task]; part != nil {
			part.counts.Add(part.actions[v.Item], v.State, v.Code, v.N)
		}
	}

	// List those that are left.
	for i := range tasks {
		t := &tasks[i]
		l.page.Next = t.Seq
		if !l.f.Since.IsZero() && t.At.Before(l.f.Since.Add(-taskSkew)) {
			l.page.Next = 0
			return true, nil
		}
		if part := parts[t.Seq]; part != nil && part.readable() && (len(l.f.Hosts) == 0 || part.onHost) &&
			l.f.FitsCounts(part.counts) {
			l.page.Tasks = append(l.page.Tasks, record.TaskSummary{Task: *t, Items: items[t.Seq], Counts: part.counts})
		}
		if len(l.page.Tasks) == l.limit {
			return true, nil
		}
	}

	return l.read >= maxTaskTargets, nil
}

// readPlaces finds out which tasks the caller may read, and which are about hosts of the filter.
func (l *taskList) readPlaces(ctx context.Context, tasks []gozzard.TaskSeq, parts map[gozzard.TaskSeq]*taskParts) error {
	places, err := l.p.o.Store.TaskPlaces(ctx, tasks)
	if err != nil {
		return err
	}
	for i := range places {
		at := &places[i]
		part := parts[at.Task]
		part.places++
		part.hidden = part.hidden || !l.sees(at.Agent, at.Addr, part.spaces[at.Item])
		part.onHost = part.onHost || part.fits[at.Item] && l.f.FitsPlace(at)
	}
	return nil
}

// taskParts is what is known about a task of a list.
type taskParts struct {
	actions map[int32]gozzard.Action
	spaces  map[int32]string
	fits    map[int32]bool // the items that the filter chooses
	known   bool           // the caller may read it whatever its targets are
	places  int            // attempts whose hosts were read
	hidden  bool           // the caller does not see one of them
	onHost  bool           // one of them is on a host of the filter
	counts  record.TaskCounts
}

func newTaskParts(f *record.TaskFilter, items []record.TaskItem) *taskParts {
	part := &taskParts{actions: map[int32]gozzard.Action{}, spaces: map[int32]string{}, fits: map[int32]bool{}}
	for i := range items {
		it := &items[i]
		part.actions[it.Index], part.spaces[it.Index] = it.Action, it.Key.Namespace
		if f.FitsItem(it) {
			part.fits[it.Index] = true
		}
	}
	return part
}

// readable reports whether the caller may read the task. A task whose attempts were removed meanwhile is not there any
// more.
func (t *taskParts) readable() bool {
	c := t.counts
	return c.Done+c.Failed+c.Running > 0 && (t.known || t.places > 0 && !t.hidden)
}

func seqsOf(tasks []gozzard.Task) []gozzard.TaskSeq {
	list := make([]gozzard.TaskSeq, len(tasks))
	for i := range tasks {
		list[i] = tasks[i].Seq
	}
	return list
}
