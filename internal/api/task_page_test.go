package api_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

const pagedTask = "20240102030405:7"

// pagedServer has a task with attempts that have no verdict yet.
func pagedServer(t *testing.T, n int) (*server, []gozzard.Attempt) {
	t.Helper()
	s := newServer(t)
	list := make([]gozzard.Attempt, n)
	for i := range list {
		list[i] = gozzard.Attempt{Agent: "a1", Addr: at(0, "10.0.0.1"), Key: gozzard.Key{Namespace: "shop", Name: fmt.Sprint("p", i)},
			Action: gozzard.ActionStart, State: gozzard.AttemptDispatched}
	}
	for _, id := range []gozzard.TaskID{pagedTask, "20240102030405:8"} {
		s.results[id] = record.TaskResults{Attempts: list, Task: gozzard.Task{ID: id, Caller: gozzard.Caller{App: "app", User: "me"}}}
	}
	return s, list
}

func page(t *testing.T, s *server, query string) (task client.Task) {
	t.Helper()
	s.call("GET", "/api/v1/tasks/"+pagedTask+"?"+query, "").decode(t, &task)
	return task
}

// TestTaskPages: every attempt is listed once and in order, while verdicts arrive between the pages.
func TestTaskPages(t *testing.T) {
	for _, limit := range []int{1, 3, 7, 10, 1000} {
		s, list := pagedServer(t, 10)
		var names []string
		query := fmt.Sprint("limit=", limit)
		for n := 0; ; n++ {
			task := page(t, s, query)
			if task.Counts.Targets != 10 || len(task.Attempts) > limit {
				t.Fatalf("limit %d: page %d is %+v", limit, n, task)
			}
			for _, a := range task.Attempts {
				names = append(names, a.Name)
			}
			if task.Next == "" {
				break
			}
			list[n].State, list[9-n].State = gozzard.AttemptOK, gozzard.AttemptFailed // verdicts before and behind the cursor
			query = fmt.Sprint("limit=", limit, "&cursor=", task.Next)
		}
		if got := strings.Join(names, " "); got != "p0 p1 p2 p3 p4 p5 p6 p7 p8 p9" {
			t.Errorf("limit %d: listed %s", limit, got)
		}
	}

	// Without limit and cursor everything is listed, as ever.
	s, _ := pagedServer(t, 150)
	if task := page(t, s, ""); len(task.Attempts) != 150 || task.Next != "" {
		t.Errorf("%d attempts, next %q", len(task.Attempts), task.Next)
	}
	next := page(t, s, "limit=1").Next
	if task := page(t, s, "cursor="+next); len(task.Attempts) != 100 || task.Attempts[0].Name != "p1" {
		t.Errorf("%d attempts of a page without a limit", len(task.Attempts))
	}
}

// TestPagesOfFailures: an attempt that fails late is not missed.
func TestPagesOfFailures(t *testing.T) {
	s, list := pagedServer(t, 6)
	verdict := func(i int, state gozzard.AttemptState) {
		list[i].State, list[i].Outcome = state, gozzard.Outcome{Code: gozzard.CodeCommandFailed}
	}
	var names []string
	query := "show=failed&limit=2"
	read := func(want string, more bool) {
		t.Helper()
		names = nil
		task := page(t, s, query)
		for _, a := range task.Attempts {
			names = append(names, a.Name)
		}
		if strings.Join(names, " ") != want || (task.Next != "") != more {
			t.Fatalf("listed %q, next %q; want %q", names, task.Next, want)
		}
		query = "limit=2&cursor=" + task.Next
	}

	verdict(0, gozzard.AttemptFailed)
	verdict(2, gozzard.AttemptFailed)
	read("p0", true) // the second one may fail later
	read("", true)
	verdict(1, gozzard.AttemptFailed)
	verdict(3, gozzard.AttemptOK)
	read("p1 p2", true)
	read("", true)
	verdict(4, gozzard.AttemptFailed)
	verdict(5, gozzard.AttemptOK)
	read("p4", false)
}

// TestWrongCursors: what is no cursor of this list is rejected, and the answer says why.
func TestWrongCursors(t *testing.T) {
	s, _ := pagedServer(t, 4)
	good := page(t, s, "limit=2").Next
	failed := page(t, s, "limit=2&show=failed").Next
	other := func() client.Task {
		var task client.Task
		s.call("GET", "/api/v1/tasks/20240102030405:8?limit=1", "").decode(t, &task)
		return task
	}().Next
	if good == "" || failed == "" || other == "" {
		t.Fatal("a cursor is missing")
	}

	for query, want := range map[string]string{
		"cursor=":                            "is damaged",
		"cursor=0":                           "is damaged",
		"cursor=" + good[1:]:                 "is damaged",
		"cursor=" + good + "A":               "is damaged",
		"cursor=" + good[:len(good)-1] + "%": "malformed",
		"cursor=" + url.QueryEscape(strings.Repeat(good, 100)):                                "is damaged",
		"cursor=" + base64.RawURLEncoding.EncodeToString([]byte("\x01\x00\x00\x00\x00\x001")): "is damaged",
		"cursor=" + other:                        "belongs to another task, 20240102030405:8",
		"show=failed&cursor=" + good:             "belongs to a list with show=all",
		"show=all&cursor=" + failed:              "belongs to a list with show=failed",
		"show=none&limit=5":                      "lists no attempts",
		"show=none&cursor=" + good:               "lists no attempts",
		"limit=0":                                "must be a whole number from 1 to 1000",
		"limit=1001":                             "must be a whole number from 1 to 1000",
		"limit=5&cursor=" + good + "&cursor=x":   "given 2 times",
		"limit=5&wait=1h&cursor=" + other[:5]:    "must be a time",
		"curser=" + good:                         "cursor",
		"limit=5&show=all&cursor=" + good + "==": "is damaged",
	} {
		if r := s.call("GET", "/api/v1/tasks/"+pagedTask+"?"+query, ""); r.code != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s answers %d %s; want %q", query, r.code, r.body, want)
		}
	}

	// Every single wrong byte is noticed.
	for i := range good {
		b := []byte(good)
		b[i] = map[bool]byte{true: 'B', false: 'A'}[b[i] == 'A']
		if r := s.call("GET", "/api/v1/tasks/"+pagedTask+"?cursor="+string(b), ""); r.code != 400 {
			t.Errorf("a cursor with another letter %d answers %d", i, r.code)
		}
	}

	// A cursor gives no rights, and a task that has fewer attempts than a cursor says is not read past its end.
	stranger := header("X-Bkapi-Authorization", `{"bk_app_code":"other","bk_app_secret":"`+secret+`","bk_username":"me"}`)
	if r := s.call("GET", "/api/v1/tasks/"+pagedTask+"?cursor="+good, "", stranger); r.code != 404 {
		t.Errorf("the cursor of another app answers %d", r.code)
	}
	res := s.results[pagedTask]
	res.Attempts = slices.Clone(res.Attempts[:1])
	s.results[pagedTask] = res
	if r := s.call("GET", "/api/v1/tasks/"+pagedTask+"?cursor="+good, ""); r.code != 400 || !strings.Contains(r.body, "after the 1 attempts") {
		t.Errorf("a cursor after the end answers %d %s", r.code, r.body)
	}
}
