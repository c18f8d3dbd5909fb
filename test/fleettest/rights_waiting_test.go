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

// TestTE16WaitingOperationNeedsItsRight: operations wait for a host that is offline. In the meantime their callers lose
// their rights in every way there is. When the host comes back, it executes only the operation whose caller still has
// the right.
func TestTE16WaitingOperationNeedsItsRight(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	l := newLoot(t)
	admin := &tenant{API: s.API, t: t}
	if status, text := admin.native(http.MethodPut, "/api/v1/topology/2", l.business(2, 1, "nobody", "topology"),
		nil); status != http.StatusOK {
		t.Fatal(text)
	}

	// Six apps may work on the host: five by their business or namespace, one by the namespace of its own.
	byBusiness := ft.J{"role": "operator", "businesses": []int{2}, "accounts": []string{"nobody"}}
	byName := func(name string) ft.J {
		return ft.J{"role": "operator", "namespaces": []string{name}, "hosts": "any", "accounts": []string{"nobody"}}
	}
	callers := map[string]*tenant{}
	for _, name := range []string{"keeps", "ungranted", "narrowed", "deleted", "disabled"} {
		callers[name] = newTenant(t, s, name, byName(name))
	}
	callers["moved"] = newTenant(t, s, "moved", byBusiness)

	// The host goes away, and each of them requests a start.
	agent.Kill(syscall.SIGTERM)
	ft.Until(t, time.Minute, func() string { return "the host stays online" }, func() bool { return !s.Online(1) })
	tasks := map[string]string{}
	for name, c := range callers {
		space := name
		if name == "moved" {
			space = "JOB_BIZ_2"
		}
		var made struct {
			Task string `json:"task_id"`
		}
		status, text := c.native(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": space,
			"names": []string{"w_" + name}, "hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}, "when_offline": "wait",
			"spec": l.spec(name, "nobody")}, &made)
		if status != http.StatusAccepted {
			t.Fatalf("%s: %s", name, text)
		}
		tasks[name] = made.Task
	}

	// All but one lose their right.
	change := func(method, path string, body any) {
		t.Helper()
		if status, text := admin.native(method, path, body, nil); status/100 != 2 {
			t.Fatalf("%s %s: %s", method, path, text)
		}
	}
	change(http.MethodDelete, "/api/v1/grants", ft.J{"app": "ungranted", "grant": byName("ungranted")})
	change(http.MethodDelete, "/api/v1/grants", ft.J{"app": "narrowed", "grant": byName("narrowed")})
	other := byName("narrowed")
	other["accounts"] = []string{"daemon"}
	change(http.MethodPost, "/api/v1/grants", ft.J{"app": "narrowed", "grant": other})
	change(http.MethodDelete, "/api/v1/apps/deleted", nil)
	change(http.MethodPut, "/api/v1/apps/disabled", ft.J{"disabled": true})
	change(http.MethodPut, "/api/v1/topology/2", "biz: 2\nname: b2\nclouds: [{id: 0, name: default}]\nsets: []\n")

	// The host comes back.
	s.AgainOnline(t, agent)
	for name, c := range callers {
		if name == "deleted" || name == "disabled" { // they cannot ask any more
			continue
		}
		text := c.settled(tasks[name])
		if lost := strings.Contains(text, "lost the right to start"); lost == (name == "keeps") {
			t.Errorf("%s: %s", name, text)
		}
	}
	ft.Until(t, time.Minute, func() string { return "what is still permitted does not run" },
		func() bool { return l.taken("keeps") == "nobody" })
	for name := range callers {
		if got := l.taken(name); name != "keeps" && got != "" {
			t.Errorf("the operation of %s was executed after its right had ended", name)
		}
	}
}
