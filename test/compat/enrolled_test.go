//go:build linux

package compat_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestEnrolled opens the fixture of a server whose hosts joined by tokens: 127.0.0.1 was updated to a release,
// 127.0.0.2 went back from it, 127.0.0.3 was revoked, 127.0.0.4 waits for approval and 127.0.0.5 was removed.
func TestEnrolled(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		dir := unpack(t, version, "enrolled")
		s := newServer(t, filepath.Join(dir, "server"), "--enrol", "--release-two-person")
		s.begin(t)

		g := newGolden(t, version, "enrolled")
		for _, path := range []string{"enrol/agents", "enrol/tokens", "hosts?limit=100", "releases", "rolls?limit=100",
			"users", "audit?limit=1000"} {
			status, answer := s.call(s.admin, http.MethodGet, "/api/v1/"+path, "")
			g.document("GET /api/v1/"+path, status, answer)
		}

		g.document("gozzard key list", 0, []byte(must(t, nil, "key", "list", "--data", s.data, "-o", "json")))
		g.compare()
		must(t, nil, "audit", "verify", "--data", s.data)

		e := &enrolled{server: s, dir: dir}
		e.updates()
		e.alone()
		e.rejoins("host1", "127.0.0.1")
		e.approves()
		e.joinsByOldToken()
	})
}

type enrolled struct {
	*server
	dir string
}

func (e *enrolled) host(name string) string { return filepath.Join(e.dir, name) }

// updates reads what the hosts remember of releases.
func (e *enrolled) updates() {
	one := must(e.t, nil, "agent", "update", "--data", e.host("host1"))
	two := must(e.t, nil, "agent", "update", "--data", e.host("host2"))
	if !strings.Contains(one, "1.1.0") || strings.Contains(one, "1.0.0") {
		e.t.Errorf("the first host has run 1.1.0, not this: %s", one)
	}
	if !strings.Contains(two, "1.0.0") || !strings.Contains(two, "1.1.0") {
		e.t.Errorf("the second host has run 1.0.0 and went back from 1.1.0, not this: %s", two)
	}
}

// alone starts an agent on its old enrolment. Its server has another address now, so the agent cannot connect. It
// supervises its process all the same.
func (e *enrolled) alone() {
	agent := start(e.t, "agent alone", "agent", "--data", e.host("host1"))
	agent.until("web runs", func() bool { return pidOf("web") > 0 })
	var status struct {
		Agent string `json:"agent"`
	}
	agent.until("it answers on its socket", func() bool {
		out, code := run(e.t, nil, "agent", "status", "--data", e.host("host1"), "-o", "json")
		return code == 0 && json.Unmarshal([]byte(out), &status) == nil
	})

	if want := strings.TrimSpace(read(e.t, filepath.Join(e.host("host1"), "agent-id"))); status.Agent != want {
		e.t.Errorf("the agent calls itself %q, want %s", status.Agent, want)
	}

	agent.stop(syscall.SIGTERM)
}

// rejoins enrols a host again, as after a long absence: certificates are valid for a day, fixtures are years old.
func (e *enrolled) rejoins(name, ip string) {
	id := strings.TrimSpace(read(e.t, filepath.Join(e.host(name), "agent-id")))
	before := pidOf("web")
	e.join(name, ip, must(e.t, e.asAdmin(), "token", "create", "--agent", id))
	agent := start(e.t, "agent", "agent", "--data", e.host(name))
	agent.until("it is online as "+id, func() bool { return e.online()[ip] == id })

	e.until("web runs for the server, too", func() bool {
		p := e.processes("demo")["web@"+ip]
		return p.State == "running" && p.Managed && !p.Stale && p.PID == before
	})

	for _, step := range []struct {
		op   string
		code int
	}{{"0", 828}, {"1", 0}, {"0", 0}} {
		if got := e.operate("web", ip, step.op); got.Code != step.code {
			e.t.Errorf("op_type %s on web: %+v, want %d", step.op, got, step.code)
		}
	}

	var state struct {
		Highest string `json:"highest"`
	}
	err := json.Unmarshal([]byte(read(e.t, filepath.Join(e.host(name), "update.json"))), &state)
	if err != nil || state.Highest != "1.1.0" {
		e.t.Errorf("the newest version that ran here was 1.1.0, now it is %q, %v", state.Highest, err)
	}
}

// approves approves the waiting host, and checks that the revoked one stays out.
func (e *enrolled) approves() {
	must(e.t, e.asAdmin(), "hosts", "approve", "127.0.0.4")
	if _, code := run(e.t, e.asAdmin(), "hosts", "approve", "127.0.0.3"); code != 1 {
		e.t.Errorf("the approval of a revoked host ended with exit code %d, not 1", code)
	}
}

// joinsByOldToken enrols a host with a token that the old program made: for hosts of cloud 3, which wait for approval.
func (e *enrolled) joinsByOldToken() {
	e.join("host9", "127.0.0.9", read(e.t, filepath.Join(e.data, "valid.token")))
	var members struct {
		Agents []struct {
			IPs   []string `json:"ips"`
			Cloud int      `json:"cloud"`
			State string   `json:"state"`
		} `json:"agents"`
	}
	e.get("/api/v1/enrol/agents", &members)

	for _, m := range members.Agents {
		if len(m.IPs) == 1 && m.IPs[0] == "127.0.0.9" && m.Cloud == 3 && m.State == "pending" {
			return
		}
	}

	e.t.Errorf("no host 127.0.0.9 of cloud 3 waits for approval: %+v", members)
}

// join joins a state folder with a token.
func (e *enrolled) join(name, ip, token string) {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		e.t.Fatal(err)
	}
	must(e.t, nil, "agent", "join", "--server", e.admin.URL, "--token-file", file, "--data", e.host(name), "--ip", ip)
}
