//go:build linux

package fleettest_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// awayHost is a server with a host that is away, an app, and a task of the app that waits for the host.
func awayHost(t *testing.T, code string) (s *ft.Server, agent *ft.Program, c *tenant, task string, l *loot) {
	t.Helper()
	s = ft.StartServer(t, "")
	agent, l = s.StartAgent(t, 1, ""), newLoot(t)
	c = newTenant(t, s, code, ft.J{"role": "operator", "namespaces": []string{"shop"}, "hosts": "any", "accounts": []string{"nobody"}})
	agent.Kill(syscall.SIGTERM)
	ft.Until(t, time.Minute, func() string { return "the host stays online" }, func() bool { return !s.Online(1) })
	return s, agent, c, c.beginWaiting(l, code), l
}

// beginWaiting asks for a start that waits for the host.
func (c *tenant) beginWaiting(l *loot, name string) string {
	c.t.Helper()
	var made struct {
		Task string `json:"task_id"`
	}
	if status, text := c.native(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "shop", "names": []string{name},
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "when_offline": "wait", "spec": l.spec(name, "nobody")}, &made); status != http.StatusAccepted {
		c.t.Fatal(text)
	}
	return made.Task
}

// TestCancelNative: an operation that waits for its host is cancelled. It has its verdict at once, the audit has the cancel, and
// the host that comes back executes what was asked for after it, and not this.
func TestCancelNative(t *testing.T) {
	t.Parallel() // it mostly waits
	s, agent, c, task, l := awayHost(t, "cancel-native")
	if status, text := c.native(http.MethodPost, "/api/v1/tasks/"+task+"/cancel", ft.J{}, nil); status != http.StatusOK ||
		!strings.Contains(text, `"cancelled":1,"running":0,"ended":0`) {
		t.Errorf("%d %s", status, text)
	}
	cancelled := func() {
		t.Helper()
		if _, text := c.native(http.MethodGet, "/api/v1/tasks/"+task, nil, nil); !strings.Contains(text, `"code":"cancelled"`) ||
			!strings.Contains(text, `"final":true`) {
			t.Errorf("%s", text)
		}
	}
	cancelled()
	if _, text := (&tenant{API: s.API, t: t}).native(http.MethodGet, "/api/v1/audit?limit=10", nil, nil); !strings.Contains(text, `"cancel:start"`) {
		t.Errorf("%s", text)
	}

	next := c.beginWaiting(l, "cancel-native-next")
	s.AgainOnline(t, agent)
	ft.Until(t, time.Minute, func() string { return "the next one has no verdict" }, func() bool {
		_, text := c.native(http.MethodGet, "/api/v1/tasks/"+next+"?wait=5s", nil, nil)
		return strings.Contains(text, `"final":true`)
	})
	cancelled()
	if _, text := c.native(http.MethodGet, "/api/v1/processes?namespace=shop&limit=10", nil, nil); !strings.Contains(text, `"cancel-native-next"`) ||
		strings.Contains(text, `"cancel-native"`) {
		t.Errorf("%s", text)
	}

	// What has its verdict keeps it.
	if status, text := c.native(http.MethodPost, "/api/v1/tasks/"+next+"/cancel", ft.J{}, nil); status != http.StatusOK ||
		!strings.Contains(text, `"cancelled":0,"running":0,"ended":1`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestTT4CancelNativeOfOthers: others do not cancel what waits: for another app the task does not exist, and a caller that may only
// look, or not any more, is rejected.
func TestTT4CancelNativeOfOthers(t *testing.T) {
	t.Parallel() // it mostly waits
	s, _, c, task, _ := awayHost(t, "cancel-others")
	admin := &tenant{API: s.API, t: t}
	cancel := func(x *tenant) (int, string) {
		t.Helper()
		return x.native(http.MethodPost, "/api/v1/tasks/"+task+"/cancel", ft.J{"attempts": []int{0}}, nil)
	}
	other := newTenant(t, s, "cancel-other", ft.J{"role": "admin", "hosts": "any"})
	if status, text := cancel(other); status != http.StatusNotFound {
		t.Errorf("another app: %d %s", status, text)
	}

	grant := ft.J{"role": "operator", "namespaces": []string{"shop"}, "hosts": "any", "accounts": []string{"nobody"}}
	if status, text := admin.native(http.MethodDelete, "/api/v1/grants", ft.J{"app": "cancel-others", "grant": grant}, nil); status/100 != 2 {
		t.Fatal(text)
	}
	if status, text := admin.native(http.MethodPost, "/api/v1/grants", ft.J{"app": "cancel-others", "grant": ft.J{"role": "viewer",
		"namespaces": []string{"shop"}, "hosts": "any"}}, nil); status/100 != 2 {
		t.Fatal(text)
	}
	if status, text := cancel(c); status != http.StatusForbidden {
		t.Errorf("without the right: %d %s", status, text)
	}
	if _, text := c.native(http.MethodGet, "/api/v1/tasks/"+task, nil, nil); strings.Contains(text, "cancelled") || strings.Contains(text, `"final":true`) {
		t.Errorf("%s", text)
	}
}
