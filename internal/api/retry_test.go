package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

func TestRetry(t *testing.T) {
	s := newServer(t)
	const path = "/api/v1/tasks/GSETASK:20240102030405:5/retry"
	s.results["20240102030405:5"] = record.TaskResults{Task: gozzard.Task{ID: "20240102030405:5",
		Caller: gozzard.Caller{App: "app", User: "me"}}}

	// Nothing failed: nothing is done.
	var accepted client.Accepted
	r := s.call("POST", path, "{}")
	if r.code != http.StatusOK || !strings.Contains(r.body, `"targets":0`) || len(s.ops) > 0 {
		t.Errorf("without a failure the answer is %d %s", r.code, r.body)
	}

	// A new task, with everything that an operation has.
	s.failed = []gozzard.Item{{Action: gozzard.ActionStop, Key: gozzard.Key{Namespace: "shop", Name: "web"},
		Targets: []gozzard.Target{{Agent: "a1"}, {Agent: "a2"}}}}
	if r := s.call("POST", path, `{"dry_run":true}`); r.code != http.StatusOK || !strings.Contains(r.body, `"targets":2`) ||
		len(s.ops) > 0 {
		t.Errorf("the dry run answers %d %s", r.code, r.body)
	}
	r = s.call("POST", path, `{"attempts":[4,0],"confirm":2,"when_offline":"wait","wait_seconds":90}`, header("Idempotency-Key", "k"))
	r.decode(t, &accepted)
	if r.code != http.StatusAccepted || accepted != (client.Accepted{TaskID: "GSETASK:20240102030405:7", Targets: 2}) ||
		r.header.Get("Location") != "/api/v1/tasks/"+accepted.TaskID {
		t.Errorf("the answer is %d %s", r.code, r.body)
	}
	op := s.last(t)
	if op.Confirm != 2 || op.WaitOffline != 90*time.Second || op.IdempotencyKey != "k" || op.Door != "api" || !op.Adopt ||
		op.Caller.App != "app" || op.RequestHash == [32]byte{} {
		t.Errorf("the operation is %+v", op)
	}
	if diff := cmp.Diff([]string{"stop shop:web @ a1", "stop shop:web @ a2"}, targetsOf(op)); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff([]int{4, 0}, s.repeated); diff != "" {
		t.Error(diff)
	}

	// Rejected requests.
	for _, c := range []struct {
		path, body string
		code       int
	}{{path, `{"action":"stop"}`, 400}, {path, `{"confirm":-1}`, 400}, {path, `{"attempts":[]}`, 400},
		{path, `{"attempts":[-1]}`, 400}, {path, `{"attempts":["1"]}`, 400}, {path, ``, 400},
		{"/api/v1/tasks/GSETASK:20240102030405:6/retry", `{}`, 404}, {"/api/v1/tasks/x/retry", `{}`, 404}} {
		if r := s.call("POST", c.path, c.body); r.code != c.code {
			t.Errorf("%s %s answers %d %s", c.path, c.body, r.code, r.body)
		}
	}
	s.refuse = gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted")
	if r := s.call("POST", path, "{}"); r.code != http.StatusForbidden {
		t.Errorf("without the right it answers %d %s", r.code, r.body)
	}
}

// TestTaskWaits: a task names the hosts that went offline with operations of it.
func TestTaskWaits(t *testing.T) {
	s := newServer(t)
	attempt := func(agent gozzard.AgentID, addr gozzard.HostAddr, state gozzard.AttemptState) gozzard.Attempt {
		return gozzard.Attempt{Agent: agent, Addr: addr, State: state, Action: gozzard.ActionStart,
			Key: gozzard.Key{Namespace: "shop", Name: "web"}}
	}
	s.results["20240102030405:5"] = record.TaskResults{Task: gozzard.Task{ID: "20240102030405:5",
		Caller: gozzard.Caller{App: "app", User: "me"}}, Attempts: []gozzard.Attempt{
		attempt("a1", at(0, "10.0.0.1"), gozzard.AttemptDispatched), // online
		attempt("a3", at(3, "10.0.0.1"), gozzard.AttemptUnknown),
		attempt("a3", at(3, "10.0.0.1"), gozzard.AttemptDispatched),
		attempt("a3", at(3, "10.0.0.1"), gozzard.AttemptPending), // waits as its caller asked for
		attempt("a3", at(3, "10.0.0.1"), gozzard.AttemptOK),
		attempt("gone", at(3, "10.0.0.7"), gozzard.AttemptUnknown), // not known, or hidden from the caller
	}}

	var task client.Task
	s.call("GET", "/api/v1/tasks/20240102030405:5?show=none", "").decode(t, &task)
	w := task.Waiting
	if w == nil || w.Attempts != 2 || w.Hosts != 1 || w.Seconds < 1000 || len(w.Named) != 1 ||
		w.Named[0].Host.Agent != "a3" || w.Named[0].Since.Unix() != 1700000000 || task.Counts.Running != 5 {
		t.Errorf("the task waits for %+v", w)
	}
}
