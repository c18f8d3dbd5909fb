package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/record"
)

func TestNothingIsServedToStrangers(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"POST /api/v1/operations", "GET /api/v1/tasks/GSETASK:20240102030405:7",
		"GET /api/v1/processes", "PUT /api/v1/processes",
		"DELETE /api/v1/processes", "GET /api/v1/hosts", "GET /metrics", "GET /api/v1/topology",
		"GET /api/v1/topology/2", "PUT /api/v1/topology/2", "GET /api/v1/topology/2/tree"} {
		method, path, _ := strings.Cut(path, " ")
		for name, auth := range map[string]string{"none": "",
			"wrong":   `{"bk_app_code":"app","bk_app_secret":"wrong","bk_username":"me"}`,
			"no user": `{"bk_app_code":"app","bk_app_secret":"` + secret + `"}`} {
			r := s.call(method, path, `{"action":"start","names":["web"],"all":true}`,
				header("X-Bkapi-Authorization", auth))
			if r.code != http.StatusUnauthorized {
				t.Errorf("%s %s with credentials %q answers %d", method, path, name, r.code)
			}
		}
	}

	if len(s.ops) != 0 {
		t.Error("a stranger had something done")
	}
}

// TestCredentialsAreNamed: who sends no credentials learns where they belong; who sends wrong ones learns no more than that.
func TestCredentialsAreNamed(t *testing.T) {
	s := newServer(t)
	none := s.call("GET", "/api/v1/tasks", "", func(r *http.Request) { r.Header.Del("X-Bkapi-Authorization") })
	if want := "header Authorization, as Bearer TOKEN, or those of an app in the header X-Bkapi-Authorization"; none.code !=
		http.StatusUnauthorized || !strings.Contains(none.body, want) {
		t.Errorf("got %d %s", none.code, none.body)
	}
	wrong := s.call("GET", "/api/v1/tasks", "", header("X-Bkapi-Authorization", `{"bk_app_code":"app","bk_app_secret":"wrong"}`))
	if wrong.code != http.StatusUnauthorized || !strings.Contains(wrong.body, "bk_app_code or bk_app_secret is wrong") {
		t.Errorf("got %d %s", wrong.code, wrong.body)
	}
}

func TestHealth(t *testing.T) {
	s := newServer(t)
	if r := s.call("GET", "/healthz", "", header("X-Bkapi-Authorization", "")); r.code != 200 ||
		r.body != "{\"status\":\"ok\"}\n" {
		t.Errorf("healthz answers %d %s", r.code, r.body)
	}

	if r := s.call("GET", "/readyz", "", header("X-Bkapi-Authorization", "")); r.code != 200 {
		t.Errorf("readyz answers %d", r.code)
	}

	sick := api.New(api.Options{Plane: s.plane, Ready: func(context.Context) error { return io.ErrUnexpectedEOF }})
	w := httptest.NewRecorder()
	sick.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))

	if w.Code != 503 || strings.Contains(w.Body.String(), "EOF") {
		t.Errorf("readyz of a server that is not ready answers %d %s", w.Code, w.Body)
	}
}

func TestMetrics(t *testing.T) {
	s := newServer(t)
	s.call("GET", "/api/v1/hosts", "")
	s.call("GET", "/no/such/path", "")
	s.metrics.TaskAccepted(3)
	s.metrics.AttemptSettled(gozzard.ActionStart, gozzard.AttemptFailed, "made up by an agent")
	s.metrics.AttemptSettled(gozzard.ActionStart, gozzard.AttemptFailed, gozzard.CodeAlreadyRunning)
	s.metrics.AttemptSettled(gozzard.ActionReload, gozzard.AttemptFailed, gozzard.CodeNotRunning)
	s.metrics.ObserveStore("accept", time.Millisecond, io.EOF)
	s.metrics.ObserveFabric("send")(time.Millisecond)
	s.metrics.ReportRefused("session")

	local := func(r *http.Request) {
		r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost:8080"
		r.Header.Del("X-Bkapi-Authorization")
	}

	r := s.call("GET", "/metrics", "", local)
	for _, want := range []string{
		`gozzard_http_requests_total{code="200",route="/api/v1/hosts"} 1`,
		`gozzard_http_requests_total{code="404",route="other"} 1`,
		`gozzard_tasks_accepted_total 1`, `gozzard_attempts_accepted_total 3`,
		`gozzard_attempts_settled_total{code="other",state="failed"} 1`,
		`gozzard_attempts_settled_total{code="already_running",state="noted"} 1`,
		`gozzard_attempts_settled_total{code="not_running",state="failed"} 1`,
		`gozzard_agents{online="true"} 2`, `gozzard_agents{online="false"} 1`,
		`gozzard_hosts{state="online"} 2`, `gozzard_hosts{state="offline"} 0`, `gozzard_hosts{state="lost"} 1`,
		`gozzard_processes{health="none",namespace="shop",state="running",wanted="running"} 2`,
		`gozzard_processes{health="none",namespace="shop",state="stopped",wanted="running"} 2`,
		`gozzard_processes{health="none",namespace="shop",state="unknown",wanted="running"} 2`,
		`gozzard_processes{health="none",namespace="游戏",state="running",wanted="running"} 2`,
		`gozzard_processes{health="none",namespace="游戏",state="unknown",wanted="running"} 1`,
		`gozzard_processes_folded_namespaces 0`,
		`gozzard_store_errors_total{call="accept"} 1`,
		`gozzard_fabric_messages_total{what="sent"} 5`, `gozzard_security_refused_total{rule="session"} 1`,
		`gozzard_store_seconds_count{call="accept"} 1`,
	} {
		if !strings.Contains(r.body, "\n"+want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
	if n := strings.Count(r.body, "\ngozzard_processes{"); n != 5 {
		t.Errorf("%d series of gozzard_processes", n)
	}

	if r := s.call("GET", "/metrics", "", local, header("X-Forwarded-For", "203.0.113.5")); r.code != 401 {
		t.Errorf("metrics through a proxy on this machine answer %d", r.code)
	}
	if r := s.call("GET", "/metrics", ""); r.code != 200 {
		t.Errorf("metrics with credentials from elsewhere answer %d", r.code)
	}
}

func TestPathsAndMethods(t *testing.T) {
	s := newServer(t)
	if r := s.call("GET", "/api/v1/nothing", ""); r.code != 404 || r.failure(t).Error.Kind != gozzard.ErrNotFound {
		t.Errorf("an unknown path answers %d", r.code)
	}
	r := s.call("PATCH", "/api/v1/processes", "")
	if r.code != 405 || r.header.Get("Allow") != "GET, PUT, DELETE" {
		t.Errorf("a wrong method answers %d, allowing %q", r.code, r.header.Get("Allow"))
	}
}

func TestErrorsOfThePlane(t *testing.T) {
	for kind, code := range map[gozzard.ErrorKind]int{
		gozzard.ErrInvalid: 400, gozzard.ErrConflict: 409, gozzard.ErrRateLimited: 429, gozzard.ErrStorageFull: 507,
		gozzard.ErrUnavailable: 503, gozzard.ErrInternal: 500,
		gozzard.ErrAppForbidden: 403, gozzard.ErrUserForbidden: 403, gozzard.ErrNotFound: 404,
	} {
		s := newServer(t)
		s.refuse = &gozzard.Error{Kind: kind, Message: "for the caller", Cause: io.ErrClosedPipe}
		r := s.call("POST", "/api/v1/operations", `{"action":"start","names":["web"],"all":true}`)
		f := r.failure(t)
		if r.code != code || f.Error.Kind != kind || strings.Contains(r.body, "pipe") {
			t.Errorf("%s answers %d %s", kind, r.code, r.body)
		}
	}
}

func seesAll(*record.Event) bool { return true }

// everybody is a caller with all rights.
var everybody = gozzard.Caller{Rights: gozzard.Everything()}
