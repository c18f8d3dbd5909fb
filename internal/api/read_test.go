package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

func TestTask(t *testing.T) {
	s := newServer(t)
	const id = "20240102030405:7"

	attempt := func(state gozzard.AttemptState, action gozzard.Action, code gozzard.Code) gozzard.Attempt {
		return gozzard.Attempt{Agent: "a1", Addr: at(0, "10.0.0.1"), Key: gozzard.Key{Namespace: "shop", Name: "web"},
			Action: action, State: state,
			Outcome: gozzard.Outcome{Code: code, Message: "said"}}
	}

	s.results[id] = record.TaskResults{Task: gozzard.Task{ID: id, Caller: gozzard.Caller{App: "app", User: "me"},
		At: time.Unix(1700000000, 0), Targets: 7}, Attempts: []gozzard.Attempt{
		attempt(gozzard.AttemptOK, gozzard.ActionStart, gozzard.CodeOK),
		attempt(gozzard.AttemptFailed, gozzard.ActionStart, gozzard.CodeAlreadyRunning),
		attempt(gozzard.AttemptFailed, gozzard.ActionStop, gozzard.CodeNotRunning),
		attempt(gozzard.AttemptFailed, gozzard.ActionStop, gozzard.CodeAlreadyRunning),
		attempt(gozzard.AttemptNotExecuted, gozzard.ActionStart, gozzard.CodeUnreachable),
		attempt(gozzard.AttemptDispatched, gozzard.ActionStart, ""),
		attempt(gozzard.AttemptUnknown, gozzard.ActionStart, ""),
	}}
	var got struct {
		ID     string `json:"task_id"`
		Final  bool   `json:"final"`
		Counts struct{ Targets, Done, Noted, Failed, Running int }
		List   []map[string]any `json:"attempts"`
	}
	read := func(query string) {
		t.Helper()
		r := s.call("GET", "/api/v1/tasks/"+id+query, "")
		got.List = nil
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.code != 200 {
			t.Fatalf("answers %d %s", r.code, r.body)
		}
	}

	read("?wait=2s")

	if got.ID != "GSETASK:"+id {
		t.Errorf("task is called %q", got.ID)
	}

	if got.Final || got.Counts != struct{ Targets, Done, Noted, Failed, Running int }{7, 3, 2, 2, 2} ||
		len(got.List) != 7 || s.awaited != 2*time.Second {
		t.Errorf("task is %+v", got)
	}

	want := map[string]any{"host": map[string]any{"agent": "a1", "cloud": 0.0, "ip": "10.0.0.1"}, "namespace": "shop",
		"name": "web", "action": "start",
		"state": "not_executed", "verdict": "failed", "code": "unreachable", "message": "said", "managed": false}
	if diff := cmp.Diff(want, got.List[4]); diff != "" {
		t.Errorf("attempt differs (-want +got):\n%s", diff)
	}
	for i, state := range []string{"ok", "noted", "noted", "failed", "not_executed"} {
		if got.List[i]["state"] != state {
			t.Errorf("attempt %d has the state %v, not %s", i, got.List[i]["state"], state)
		}
	}
	if read("?show=failed"); len(got.List) != 2 || got.Counts.Targets != 7 {
		t.Errorf("failed ones are %+v", got)
	}
	if read("?show=none"); len(got.List) != 0 || got.Counts.Targets != 7 {
		t.Errorf("none are %+v", got)
	}

	if r := s.call("GET", "/api/v1/tasks/GSETASK:"+id, ""); r.code != 200 {
		t.Errorf("the task by its name answers %d", r.code)
	}

	for _, path := range []string{"GSETASK:20240102030405:8", "nonsense", strings.Repeat("x", 5000)} {
		if r := s.call("GET", "/api/v1/tasks/"+path, ""); r.code != 404 {
			t.Errorf("task %.20s answers %d", path, r.code)
		}
	}

	other := header("X-Bkapi-Authorization", `{"bk_app_code":"other","bk_app_secret":"`+secret+`","bk_username":"me"}`)
	if r := s.call("GET", "/api/v1/tasks/"+id, "", other); r.code != 404 {
		t.Errorf("another app's task answers %d", r.code)
	}

	for _, query := range []string{"?wait=1h", "?wait=-1s", "?wait=5", "?show=some", "?wiat=1s"} {
		if r := s.call("GET", "/api/v1/tasks/"+id+query, ""); r.code != 400 {
			t.Errorf("%s answers %d", query, r.code)
		}
	}
}

type processes = client.ProcessPage

func TestProcesses(t *testing.T) {
	for query, want := range map[string]int{
		"":                                       9,
		"namespace=shop":                         6,
		"namespace=sh*&name=web":                 3,
		"name=web&name=worker&state=stopped":     2,
		"state=unknown":                          3,
		"state=crash-loop&state=backing_off":     0,
		"host=0:10.0.0.1":                        3,
		"host=10.0.0.2":                          3,
		"host=a3&managed=false":                  1,
		"host=a3&hosted=false":                   1,
		"managed=false&hosted=false":             -1,
		"cloud=3":                                3,
		"host=10.9.9.9":                          0,
		"namespace=" + url.QueryEscape("游戏"):     3,
		"name=" + url.QueryEscape("?关*"):         3,
		"state=unregistered":                     0,
		"label=tier%3Dfront":                     9,
		"label=tier":                             9,
		"label=!tier":                            0,
		"label=tier!%3Dback&label=tier&name=web": 3,
		"label=tier%3Df*&label=tier!%3Dfront":    0,
		"label=%3Dx":                             -1,
		"label=":                                 -1,
		"label=tier&biz=2":                       -1,
		strings.Repeat("label=a&", 65):           -1,
		"state=running&state=stopped&cloud=0":    6,
		"name=%5C":                               -1,
		"host=10.0.0.1":                          -1, // two clouds have it
		"host=10.0.0":                            -1,
		"state=up":                               -1,
		"managed=yes":                            -1,
		"hosted=yes":                             -1,
		"limit=1001":                             -1,
		"limit=0":                                -1,
		"limit=-1":                               -1,
		"start=x":                                -1,
		"nam=web":                                -1,
		"limit=5&limit=6":                        -1,
		"cloud=-1":                               -1,
		"cloud=zero":                             -1,
		"name=" + strings.Repeat("a", 257):       -1,
		"name=" + strings.Repeat("a*", 129):      -1,
		"name=a%00":                              -1,
		"%zz":                                    -1,
		"start=2147483647":                       9,
		"name=web&host=a1&host=a2&limit=1":       2,
		"namespace=shop&namespace=none&limit=10": 6,
	} {
		s := newServer(t)
		r := s.call("GET", "/api/v1/processes?"+query, "")
		if want < 0 {
			if r.code != http.StatusBadRequest {
				t.Errorf("%s answers %d %s", query, r.code, r.body)
			}
			continue
		}
		var got processes
		r.decode(t, &got)
		if r.code != 200 || got.Count != want {
			t.Errorf("%s finds %d, want %d", query, got.Count, want)
		}
	}
}

func TestProcessRow(t *testing.T) {
	s := newServer(t)
	var got processes
	s.call("GET", "/api/v1/processes?namespace=shop&name=web&host=a3", "").decode(t, &got)
	if len(got.Processes) != 1 {
		t.Fatalf("found %+v", got)
	}
	p := got.Processes[0]
	if p.Host != (client.HostRef{Agent: "a3", Cloud: 3, IP: "10.0.0.1"}) || p.State != "unknown" || p.Wanted != "running" ||
		!p.Managed || !p.Stale || p.PID != 77 || p.Labels["tier"] != "front" {
		t.Errorf("row is %+v", p)
	}
}

func TestHosts(t *testing.T) {
	s := newServer(t)
	var got struct {
		Count int
		Hosts []struct {
			Agent    string
			Online   bool
			Addrs    []struct{ Cloud int }
			LastSeen time.Time `json:"last_seen"`
		}
	}
	r := s.call("GET", "/api/v1/hosts?start=1&limit=5", "")
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Count != 3 || len(got.Hosts) != 2 || got.Hosts[0].Agent != "a2" || got.Hosts[1].Online ||
		len(got.Hosts[1].Addrs) != 2 || got.Hosts[0].LastSeen.Unix() != 1700000000 {
		t.Errorf("hosts are %+v", got)
	}

	if r := s.call("GET", "/api/v1/hosts?start=99", ""); r.code != 200 || !strings.Contains(r.body, `"hosts":[]`) {
		t.Errorf("past the end answers %d %s", r.code, r.body)
	}
}
