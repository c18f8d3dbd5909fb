//go:build linux

package faults_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

// put writes a file on the first n simulated hosts.
func (c *appCaller) put(n, confirm int, more ft.J) (int, string) {
	c.s.t.Helper()
	var hosts []ft.J
	for i := range n {
		hosts = append(hosts, ft.J{"agent": sim.AgentID(i)})
	}
	body := ft.J{"namespace": "gse", "hosts": hosts, "path": "/data/app/web.conf", "account": "root", "content": "port = 80\n"}
	if confirm > 0 {
		body["confirm"] = confirm
	}
	for k, v := range more {
		body[k] = v
	}
	return c.send(http.MethodPut, "/api/v1/files", body)
}

// TestTT5ManyFiles: to write a file on many hosts needs a confirmation, and files count with stops and kills. Smaller steps,
// a repeated task, other requests, another user and a restart of the server do not get around it.
func TestTT5ManyFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t, "--confirm-above=2", "--destructive-quota=8")
	s.StartSim(t, 3)
	ft.Until(t, time.Minute, func() string { return "the hosts do not come" }, func() bool {
		_, body := s.Get(t, "/api/v1/hosts")
		return strings.Count(body, `"online":true`) == 3
	})
	shop := s.create("shop", "--role=operator", "--account=root", "--action=configure", "--action=start", "--action=stop")
	accepted := func(what string, status int, body string) {
		t.Helper()
		if status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", what, status, body)
		}
	}
	asked := func(what, want string) func(status int, body string) {
		return func(status int, body string) {
			t.Helper()
			if status != http.StatusBadRequest || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s, want %q", what, status, body, want)
			}
		}
	}

	// Many at once, with a wrong number, and as a content that the hosts keep.
	asked("three", "configure concerns 3 files, more than 2: repeat it with confirm 3")(shop.put(3, 0, nil))
	asked("a wrong number", "concerns 3 files, and confirm is 2")(shop.put(3, 2, nil))
	asked("a negative number", "confirm")(shop.put(3, 0, ft.J{"confirm": -3}))
	asked("an admin", "more than 2")(s.admin().put(3, 0, nil))
	asked("kept", "more than 2")(shop.put(3, 0, ft.J{"content": nil, "kept": strings.Repeat("a", 64)}))
	asked("as an operation", "configure")(shop.send(http.MethodPost, "/api/v1/operations", ft.J{"action": "configure",
		"namespace": "gse", "names": []string{"file:/data/app/web.conf"}, "hosts": []ft.J{{"agent": sim.AgentID(0)}}}))
	status, body := shop.put(3, 3, nil)
	accepted("confirmed", status, body)

	// To repeat what failed is a new request. Hosts that never came do not count, but their number must be confirmed again.
	var task struct {
		ID string `json:"task_id"`
	}
	strangers := ft.J{"hosts": []ft.J{{"ip": "10.9.9.1"}, {"ip": "10.9.9.2"}, {"ip": "10.9.9.3"}}}
	status, body = shop.put(3, 3, strangers)
	accepted("unknown hosts", status, body)
	if err := json.Unmarshal([]byte(body), &task); err != nil {
		t.Fatal(err)
	}
	asked("repeated", "configure concerns 3 files, more than 2: repeat it with confirm 3")(
		shop.send(http.MethodPost, "/api/v1/tasks/"+task.ID+"/retry", ft.J{}))

	// Small steps: three are counted, so five are left of eight.
	for range 5 {
		status, body := shop.put(1, 0, nil)
		accepted("a small step", status, body)
	}
	above := func(when string) {
		t.Helper()
		asked(when, "configure concerns 1 files, and app shop may")(shop.put(1, 0, nil))
		asked(when+", another user", "8 an hour")(shop.as("another").put(1, 0, nil))
	}
	above("at once")
	status, body = shop.put(1, 1, nil)
	accepted("confirmed above the quota", status, body)

	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	above("after a restart")
}
