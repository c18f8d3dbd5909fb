package api_test

import (
	"net/http"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// TestCancel: the answer counts what is cancelled, what runs on, and what had its verdict.
func TestCancel(t *testing.T) {
	s := newServer(t)
	const path = "/api/v1/tasks/GSETASK:20240102030405:5/cancel"
	attempt := func(i int32, state gozzard.AttemptState, code gozzard.Code) gozzard.Attempt {
		return gozzard.Attempt{Ref: gozzard.AttemptRef{Task: 5, Index: i}, State: state, Outcome: gozzard.Outcome{Code: code}}
	}
	s.results["20240102030405:5"] = record.TaskResults{Task: gozzard.Task{ID: "20240102030405:5",
		Caller: gozzard.Caller{App: "app", User: "me"}}, Attempts: []gozzard.Attempt{
		attempt(0, gozzard.AttemptPending, ""), attempt(1, gozzard.AttemptDispatched, ""), attempt(2, gozzard.AttemptOK, gozzard.CodeOK),
		attempt(3, gozzard.AttemptPending, ""), attempt(4, gozzard.AttemptUnknown, gozzard.CodeUnreachable)}}

	for body, want := range map[string]client.Cancelled{
		`{}`:                 {Cancelled: 2, Running: 2, Ended: 1},
		`{"attempts":[3,2]}`: {Cancelled: 1, Ended: 1},
		`{"attempts":[1]}`:   {Running: 1},
		`{"attempts":[77]}`:  {},
	} {
		want.TaskID = "GSETASK:20240102030405:5"
		var got client.Cancelled
		r := s.call("POST", path, body)
		if r.decode(t, &got); r.code != http.StatusOK || got != want {
			t.Errorf("%s: %d %s", body, r.code, r.body)
		}
	}

	for _, c := range []struct {
		path, body string
		code       int
	}{{path, `{"attempts":[]}`, 400}, {path, `{"attempts":[-1]}`, 400}, {path, `{"all":true}`, 400}, {path, ``, 400},
		{"/api/v1/tasks/GSETASK:20240102030405:6/cancel", `{}`, 404}, {"/api/v1/tasks/x/cancel", `{}`, 404}} {
		if r := s.call("POST", c.path, c.body); r.code != c.code {
			t.Errorf("%s %s answers %d %s", c.path, c.body, r.code, r.body)
		}
	}
}
