package control_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// listed reads all pages of a list.
func (r *rig) listed(c gozzard.Caller, f record.TaskFilter, limit int) (list []record.TaskSummary) {
	r.t.Helper()
	for {
		page, err := r.plane.Tasks(r.t.Context(), c, f, limit)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page.Tasks) > limit {
			r.t.Fatalf("a page of %d has %d tasks", limit, len(page.Tasks))
		}
		list = append(list, page.Tasks...)
		if page.Next == 0 {
			return list
		}
		if f.Before > 0 && page.Next >= f.Before {
			r.t.Fatalf("the page before %d goes on before %d", f.Before, page.Next)
		}
		f.Before = page.Next
	}
}

// operateAs requests an action as a caller.
func (r *rig) operateAs(c gozzard.Caller, action gozzard.Action, namespace, name string,
	agents ...gozzard.AgentID) gozzard.Task {
	r.t.Helper()
	it := gozzard.Item{Action: action, Key: gozzard.Key{Namespace: namespace, Name: name}, Spec: spec(60)}
	for _, a := range agents {
		it.Targets = append(it.Targets, gozzard.Target{Agent: a, ResultKey: string(a)})
	}
	task, err := r.plane.Operate(r.t.Context(), &gozzard.Operation{Caller: c, Door: "api", Items: []gozzard.Item{it}})
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

// TestTI3TaskLists: a caller lists exactly the tasks that it may read by their ids, and no filter finds others.
func TestTI3TaskLists(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)

	// Callers of two apps: one sees everything, one sees a namespace, one sees a host, one sees nothing.
	all := func(app, user string) gozzard.Caller {
		return gozzard.Caller{App: app, User: user, Rights: gozzard.Everything()}
	}
	with := func(user string, g gozzard.Grant) gozzard.Caller {
		g.Role = gozzard.RoleViewer
		return gozzard.Caller{App: "app", User: user, Rights: &gozzard.Rights{Grants: []gozzard.Grant{g}}}
	}
	callers := []gozzard.Caller{all("app", "admin"), all("app", "boss"), all("else", "admin"), all("else", "boss"),
		with("shopper", gozzard.Grant{Namespaces: []string{"shop"}}),
		with("hoster", gozzard.Grant{Nets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}),
		with("boss", gozzard.Grant{Namespaces: []string{"shop"}, Nets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}),
		{App: "app", User: "blind", Rights: &gozzard.Rights{}}, {App: "app", User: "nothing"},
		all("user:ann", "ann"), all("user:ann", "other"),
		{App: "user:tim", User: "tim", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin, Namespaces: []string{"*"},
			Nets: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}}}}

	// Tasks of several of them, on each host and in two namespaces.
	var tasks []gozzard.Task
	for i, c := range []gozzard.Caller{callers[0], callers[1], callers[2], callers[0]} {
		for _, namespace := range []string{"shop", "bank"} {
			for _, agents := range [][]gozzard.AgentID{{me}, {other}, {me, other}, {me, "nobody"}} {
				action := []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop}[i%2]
				tasks = append(tasks, r.operateAs(c, action, namespace, fmt.Sprint("p", i), agents...))
			}
		}
	}

	// No filter shows a task that cannot be read, and without a filter all are there.
	filters := map[string]record.TaskFilter{"none": {}, "user": {User: "admin"}, "app": {App: "app"}, "other app": {App: "else"},
		"mine": {Mine: true}, "mine of another": {Mine: true, User: "boss"}, "state": {State: record.TaskRunning},
		"failed": {State: record.TaskFailed}, "action": {Actions: []gozzard.Action{gozzard.ActionStop}},
		"namespace": {Namespaces: []string{"b*"}}, "name": {Names: []string{"p1", "p2"}},
		"host":         {Hosts: []record.TaskHost{{Agent: other}}},
		"address":      {Hosts: []record.TaskHost{{Addr: gozzard.HostAddr{IP: netip.MustParseAddr("127.0.0.2")}, AnyCloud: true}}},
		"other cloud":  {Hosts: []record.TaskHost{{Addr: gozzard.HostAddr{Cloud: 5, IP: netip.MustParseAddr("127.0.0.2")}}}},
		"since":        {Since: time.Now().Add(-time.Hour)},
		"in an hour":   {Since: time.Now().Add(time.Hour)},
		"before":       {Before: tasks[len(tasks)/2].Seq},
		"all together": {User: "admin", Actions: []gozzard.Action{gozzard.ActionStart}, Namespaces: []string{"shop"}, Hosts: []record.TaskHost{{Agent: me}}},
	}
	for _, c := range callers {
		var readable []gozzard.TaskID
		for _, task := range slices.Backward(tasks) {
			if _, err := r.plane.Results(t.Context(), c, task.ID); err == nil {
				readable = append(readable, task.ID)
			}
		}
		for name, f := range filters {
			for _, limit := range []int{1, 3, 100} {
				got := r.listed(c, f, limit)
				if name == "none" && !slices.Equal(idsOf(got), readable) {
					t.Errorf("%s/%s lists %v and can read %v", c.User, c.App, idsOf(got), readable)
				}
				for i := range got {
					if !slices.Contains(readable, got[i].Task.ID) {
						t.Errorf("%s/%s finds task %s by %s and may not read it", c.User, c.App, got[i].Task.ID, name)
					}
				}
			}
		}
	}

	// A person that sees everything reads the tasks of all apps. No app does, nor does a person that sees less.
	for i, want := range map[int]int{9: len(tasks), 10: 0, 11: 0, 2: 8, 3: 8} {
		if got := len(r.listed(callers[i], record.TaskFilter{}, 100)); got != want {
			t.Errorf("%s of %s reads %d of %d tasks, want %d", callers[i].User, callers[i].App, got, len(tasks), want)
		}
	}
	for name, want := range map[string]int{"other app": 8, "app": 24, "mine": 0, "user": 24} {
		if got := len(r.listed(callers[9], filters[name], 100)); got != want {
			t.Errorf("the person finds %d tasks by %s, want %d", got, name, want)
		}
	}

	// Filters choose what they say.
	for name, want := range map[string]string{"name": "p1", "other app": "", "other cloud": "",
		"in an hour": "", "mine of another": ""} {
		for _, s := range r.listed(callers[0], filters[name], 100) {
			if want == "" || s.Items[0].Key.Name != want {
				t.Errorf("%s finds %+v", name, s)
			}
		}
	}
	for name, n := range map[string]int{"action": 16, "host": 12, "address": 12, "all together": 3, "before": 16, "mine": 16,
		"failed": 6, "namespace": 12} {
		if got := len(r.listed(callers[0], filters[name], 100)); got != n {
			t.Errorf("%s finds %d tasks, want %d", name, got, n)
		}
	}
}

func idsOf(list []record.TaskSummary) (ids []gozzard.TaskID) {
	for i := range list {
		ids = append(ids, list[i].Task.ID)
	}
	return ids
}

// TestTaskListCounts: the counts of a list are those of the task, while it runs and afterwards.
func TestTaskListCounts(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	task := r.operate(gozzard.ActionStart, 0, me, other, "nobody")
	want := func(f record.TaskFilter, want record.TaskCounts) {
		t.Helper()
		list := r.listed(caller, f, 10)
		if len(list) != 1 || list[0].Counts != want || list[0].Task.ID != task.ID || list[0].Items[0].Key != key {
			t.Errorf("the list is %+v, want counts %+v", list, want)
		}
	}

	want(record.TaskFilter{State: record.TaskRunning}, record.TaskCounts{Failed: 1, Running: 2})
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.report(other, 1, done(r.op(other, 1, task), gozzard.CodeAlreadyRunning))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.verdict(task, other, gozzard.AttemptFailed, gozzard.CodeAlreadyRunning)
	want(record.TaskFilter{State: record.TaskFailed}, record.TaskCounts{Done: 2, Noted: 1, Failed: 1})
	if list := r.listed(caller, record.TaskFilter{State: record.TaskDone}, 10); len(list) != 0 {
		t.Errorf("a task with a failure is done: %+v", list)
	}
}

// countedStore counts what is read for lists.
type countedStore struct {
	*sqlstore.Store
	tasks, attempts *atomic.Int64
}

func (s countedStore) TasksOf(ctx context.Context, app, user string, before gozzard.TaskSeq, limit int) ([]gozzard.Task,
	error) {
	list, err := s.Store.TasksOf(ctx, app, user, before, limit)
	s.tasks.Add(int64(len(list)))
	return list, err
}

func (s countedStore) TaskVerdicts(ctx context.Context, tasks []gozzard.TaskSeq) ([]record.TaskVerdict, error) {
	list, err := s.Store.TaskVerdicts(ctx, tasks)
	for i := range list {
		s.attempts.Add(int64(list[i].N))
	}
	return list, err
}

// TestTaskListWork: one page reads a bounded part of the history, however rarely a filter matches and however large the
// tasks are.
func TestTaskListWork(t *testing.T) {
	r := newRig(t)
	var tasks, attempts atomic.Int64
	r.stop()
	r.around = func(s *sqlstore.Store) control.Store { return countedStore{s, &tasks, &attempts} }
	r.start()

	record1 := func(app string, n int) {
		t.Helper()
		task := &record.NewTask{Task: gozzard.Task{Caller: gozzard.Caller{App: app, User: "admin"}, Door: "api", At: time.Now(),
			Targets: n}}
		for i := range n {
			task.Attempts = append(task.Attempts, gozzard.Attempt{Op: gozzard.NewOpID(), Agent: gozzard.AgentID(fmt.Sprint("h", i)),
				Key: key, Action: gozzard.ActionStart, State: gozzard.AttemptOK, Outcome: gozzard.Outcome{Code: gozzard.CodeOK}})
		}
		if _, err := r.store.Accept(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		record1("app", 1)
		record1("noise", 1)
	}

	// The first page of a history reads no more than it shows and a little.
	page, err := r.plane.Tasks(t.Context(), caller, record.TaskFilter{}, 5)
	if err != nil || len(page.Tasks) != 5 || page.Next != page.Tasks[4].Task.Seq || tasks.Load() > 20 {
		t.Errorf("a page of 5 has %d tasks and looks at %d: %v", len(page.Tasks), tasks.Load(), err)
	}
	tasks.Store(0)
	if got := r.listed(caller, record.TaskFilter{Names: []string{"none"}}, 5); len(got) != 0 || tasks.Load() > 300 {
		t.Errorf("a name that no task has finds %d and looks at %d", len(got), tasks.Load())
	}

	// Large tasks end a page early, and the pages together have all.
	for range 4 {
		record1("app", 30_000)
	}
	attempts.Store(0)
	page, err = r.plane.Tasks(t.Context(), caller, record.TaskFilter{}, 100)
	if err != nil || len(page.Tasks) != 4 || attempts.Load() > 130_000 || page.Next == 0 {
		t.Errorf("a page has %d tasks of %d attempts: %v", len(page.Tasks), attempts.Load(), err)
	}
	if got := r.listed(caller, record.TaskFilter{}, 100); len(got) != 304 {
		t.Errorf("the pages have %d tasks", len(got))
	}
	if !strings.Contains(fmt.Sprint(page.Tasks[0].Counts), "30000") {
		t.Errorf("the counts of a large task are %+v", page.Tasks[0].Counts)
	}
}
