package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

func TestTaskList(t *testing.T) {
	s := newServer(t)
	items := []record.TaskItem{{Key: gozzard.Key{Namespace: "shop", Name: "web"}, Action: gozzard.ActionStart},
		{Index: 1, Key: gozzard.Key{Namespace: "shop", Name: "web"}, Action: gozzard.ActionStop}}
	for i := range 12 {
		items = append(items, record.TaskItem{Index: int32(i + 2), Action: gozzard.ActionStart,
			Key: gozzard.Key{Namespace: "游戏", Name: "p" + string(rune('a'+i))}})
	}
	s.list = record.TaskPage{Next: 7, Tasks: []record.TaskSummary{{Items: items, Counts: record.TaskCounts{Done: 3, Noted: 1,
		Failed: 2, Running: 1}, Task: gozzard.Task{Seq: 7, ID: "20240102030405:7", At: time.Unix(1700000000, 0), Door: "gse",
		Caller: gozzard.Caller{App: "app", User: "me"}}}}}

	// The answer has the counts, the actions, and the first processes.
	r := s.call("GET", "/api/v1/tasks?limit=1&name=w*", "")
	var page client.TaskPage
	r.decode(t, &page)
	got := page.Tasks[0]
	if r.code != http.StatusOK || page.Next != 7 || got.ID != "GSETASK:20240102030405:7" || got.Door != "gse" || got.Final ||
		got.Counts != (client.Counts{Targets: 6, Done: 3, Noted: 1, Failed: 2, Running: 1}) ||
		!slices.Equal(got.Actions, []string{"start", "stop"}) || len(got.Processes) != 10 || got.More != 3 {
		t.Errorf("the page is %+v", page)
	}
	if link := r.header.Get("Link"); link != `</api/v1/tasks?before=7&limit=1&name=w%2A>; rel="next"` {
		t.Errorf("the link is %s", link)
	}

	// An empty page has a list.
	s.list = record.TaskPage{}
	if r := s.call("GET", "/api/v1/tasks", ""); strings.TrimSpace(r.body) != `{"tasks":[]}` {
		t.Errorf("an empty list is %s", r.body)
	}
}

func TestTaskListFilter(t *testing.T) {
	s := newServer(t)
	r := s.call("GET", "/api/v1/tasks?since=2026-01-02T15:04:05Z&action=start&action=kill&user=bob&app=app&mine=true"+
		"&namespace=sh*&name=web&name=db&host=10.0.0.2&host=3:10.0.0.9&host=gone&host=10.0.0.1&state=failed"+
		"&before=GSETASK:20240102030405:17&limit=3", "")
	if r.code != http.StatusOK {
		t.Fatal(r.body)
	}
	want := record.TaskFilter{App: "app", User: "bob", Mine: true, Since: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		Actions: []gozzard.Action{gozzard.ActionStart, gozzard.ActionKill}, Namespaces: []string{"sh*"},
		Names: []string{"web", "db"}, State: record.TaskFailed, Before: 17, Hosts: []record.TaskHost{
			{Addr: gozzard.HostAddr{IP: at(0, "10.0.0.2").IP}, AnyCloud: true}, {Agent: "a2"}, // the host has the address now
			{Addr: at(3, "10.0.0.9")}, {Agent: "a3"}, // also under its other addresses
			{Agent: "gone"}, // unknown hosts are found by what was recorded
			{Addr: gozzard.HostAddr{IP: at(0, "10.0.0.1").IP}, AnyCloud: true}, // in two clouds
		}}
	if diff := cmp.Diff(want, s.listed, cmp.Comparer(func(a, b gozzard.HostAddr) bool { return a == b })); diff != "" ||
		s.listedMax != 3 {
		t.Errorf("limit %d, filter (-want +got):\n%s", s.listedMax, diff)
	}

	for query, words := range map[string]string{"state=unknown": "running", "action=dance": "action", "before=x": "task id",
		"since=yesterday": "since", "host=%2F": "cloud:ip", "limit=0": "limit", "limit=1001": "limit", "mine=1": "mine",
		"user=a&user=b": "2 times", "name=..%5C*": "name", "before=-1": "before", "nonsense=1": "unknown",
		"start=3": "unknown"} {
		if r := s.call("GET", "/api/v1/tasks?"+query, ""); r.code != http.StatusBadRequest || !strings.Contains(r.body, words) {
			t.Errorf("%s answers %d %s", query, r.code, r.body)
		}
	}
	if r := s.call("GET", "/api/v1/tasks", "", header("X-Bkapi-Authorization", "")); r.code != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d", r.code)
	}
}
