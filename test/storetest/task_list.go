package storetest

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
)

// acceptAs records attempts as a task of a caller.
func acceptAs(t *testing.T, s control.Store, app, user string, list []gozzard.Attempt) gozzard.TaskSeq {
	t.Helper()
	n := newTask(list)
	n.Task.Caller.App, n.Task.Caller.User = app, user
	_, err := s.Accept(t.Context(), n)
	must(t, err)
	return n.Task.Seq
}

// taskLists: the tasks of an app or of a user, by pages from the newest on.
func taskLists(t *testing.T, s control.Store) {
	var mine, alices []gozzard.TaskSeq
	for i := range 30 {
		user := "alice"
		if i%3 == 0 {
			user = "bob"
		}
		seq := acceptAs(t, s, "mine", user, attempts(1))
		mine = append([]gozzard.TaskSeq{seq}, mine...)
		if user == "alice" {
			alices = append([]gozzard.TaskSeq{seq}, alices...)
		}
		acceptAs(t, s, "other", "alice", attempts(1))
	}

	for user, want := range map[string][]gozzard.TaskSeq{"": mine, "alice": alices, "nobody": nil} {
		var got []gozzard.TaskSeq
		before := gozzard.TaskSeq(0)
		for {
			page, err := s.TasksOf(t.Context(), "mine", user, before, 7)
			must(t, err)
			for i := range page {
				if page[i].Caller.App != "mine" || user != "" && page[i].Caller.User != user || page[i].Targets != 1 {
					t.Errorf("the list of %q has %+v", user, page[i])
				}
				got = append(got, page[i].Seq)
			}
			if len(page) < 7 {
				break
			}
			before = page[6].Seq
		}
		equal(t, "tasks of "+user, got, want)
	}

	all, err := s.TasksOf(t.Context(), "", "", 0, 1000)
	must(t, err)
	if len(all) < 2*len(mine) || all[0].Seq < all[len(all)-1].Seq {
		t.Errorf("the list of all apps has %d tasks from %d to %d", len(all), all[0].Seq, all[len(all)-1].Seq)
	}

	none, err := s.TasksOf(t.Context(), "m", "", 0, 7)
	must(t, err)
	equal(t, "tasks of an app that is the beginning of another one", len(none), 0)
}

// taskParts: the items, counts and hosts of tasks in a list.
func taskParts(t *testing.T, s control.Store) {
	// Record tasks with every state, a strange text, and nothing.
	list := attempts(8)
	for i := range list {
		list[i].State = allStates[i%len(allStates)]
		if list[i].State.Final() {
			list[i].Outcome = gozzard.Outcome{Code: gozzard.CodeRefused, Message: `"code":"ok"`}
		}
	}
	list[3].Outcome.Code = gozzard.CodeOK
	list[7].Key.Name, list[7].Action = "数据库", gozzard.ActionStop
	first := acceptAs(t, s, "a", "u", list)
	large := acceptAs(t, s, "a", "u", attempts(700))
	empty := acceptAs(t, s, "a", "u", nil)
	all := []gozzard.TaskSeq{empty, large, first, 99_999}

	// Read them together.
	items, err := s.TaskItems(t.Context(), all)
	must(t, err)
	equal(t, "items", items, map[gozzard.TaskSeq][]record.TaskItem{
		first: {{Index: 0, Key: list[0].Key, Action: gozzard.ActionStart},
			{Index: 1, Key: list[7].Key, Action: gozzard.ActionStop}},
		large: {{Index: 0, Key: list[0].Key, Action: gozzard.ActionStart}}})

	verdicts, err := s.TaskVerdicts(t.Context(), all)
	must(t, err)
	slices.SortFunc(verdicts, func(a, b record.TaskVerdict) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Item, b.Item), cmp.Compare(a.State, b.State))
	})
	equal(t, "verdicts", verdicts, []record.TaskVerdict{
		{Task: first, State: gozzard.AttemptPending, N: 1}, {Task: first, State: gozzard.AttemptDispatched, N: 1},
		{Task: first, State: gozzard.AttemptUnknown, N: 1}, {Task: first, State: gozzard.AttemptOK, N: 1},
		{Task: first, State: gozzard.AttemptFailed, Code: gozzard.CodeRefused, N: 1},
		{Task: first, State: gozzard.AttemptNotExecuted, Code: gozzard.CodeRefused, N: 1},
		{Task: first, State: gozzard.AttemptInterrupted, Code: gozzard.CodeRefused, N: 1},
		{Task: first, Item: 1, State: gozzard.AttemptPending, N: 1},
		{Task: large, State: gozzard.AttemptPending, N: 700}})

	places, err := s.TaskPlaces(t.Context(), all)
	must(t, err)
	if len(places) != 708 || !slices.Contains(places, record.TaskPlace{Task: first, Item: 1, Agent: list[7].Agent,
		Addr: list[7].Addr}) {
		t.Errorf("%d places", len(places))
	}

	// A removed task is not in lists any more.
	settle(t, s, []bool{true, true, true, true}, rejected(list[0]), rejected(list[1]), rejected(list[2]), rejected(list[7]))
	for n := 1; n > 0; {
		n, err = s.Prune(t.Context(), start.Add(time.Second), 10)
		must(t, err)
	}
	tasks, err := s.TasksOf(t.Context(), "a", "", 0, 10)
	must(t, err)
	if len(tasks) != 1 || tasks[0].Seq != large {
		t.Errorf("after pruning the list has %+v", tasks)
	}
}

// rejected ends an attempt.
func rejected(a gozzard.Attempt) record.Settlement { return settlement(a, gozzard.AttemptNotExecuted) }
