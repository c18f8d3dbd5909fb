//go:build linux

package cluster_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestAnyServer: hosts of two servers are operated through either, and both know everything.
func TestAnyServer(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	a.join("127.0.0.11")
	b.join("127.0.0.12")
	for _, m := range i.servers {
		m.online("127.0.0.11", true)
		m.online("127.0.0.12", true)
	}

	// Operate through each, on the hosts of both. Each host has its own daemon.
	for n, ip := range []string{"127.0.0.11", "127.0.0.12"} {
		d := ft.NewDaemon(t, t.TempDir(), fmt.Sprintf("web%d", n))
		for round, op := range []int{0, 1, 0, 1, 0, 1} {
			m, other := i.servers[round%2], i.servers[(round+1)%2]
			task := m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "shop", "name": d.Name}, "op_type": op,
				"hosts": []ft.J{host(ip)}, "spec": d.Spec(nil)})
			for _, reader := range []*member{m, other} {
				for key, e := range reader.Await(task) {
					if e.Code != 0 {
						t.Errorf("operation %d through %s, read at %s: %s: %d %s", op, m.listen, reader.listen, key, e.Code, e.Msg)
					}
				}
			}
		}
		if starts, stops := d.Count("start"), d.Count("stop"); starts != 3 || stops != 3 {
			t.Errorf("%s: %d starts and %d stops, want 3 of each", ip, starts, stops)
		}
	}

	// A process of a host of the one is in the lists of the other, with its log.
	out := b.cli("run", "--name", "talker", "--host", "127.0.0.11", "--user", "root", "--", "sh", "-c", "while :; do echo I am here; sleep 1; done")
	if !strings.Contains(out, "1 done of 1") {
		t.Errorf("run: %s", out)
	}
	for _, m := range i.servers {
		ft.Until(t, time.Minute, func() string { return m.listen + ": the process is not listed as running" }, func() bool {
			out, err := m.try("ps", "talker")
			return err == nil && strings.Contains(out, "running")
		})
		ft.Until(t, time.Minute, func() string { return m.listen + " does not show the log" }, func() bool {
			out, err := m.try("logs", "talker")
			return err == nil && strings.Contains(out, "I am here")
		})
	}
	a.cli("stop", "talker")
}

// TestChangesReachAll: what is changed on one server counts on the other within a second or two.
func TestChangesReachAll(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	b.join("127.0.0.13")
	a.online("127.0.0.13", true)

	// An app that is made here can be used there, and not any more when it is removed.
	a.cli("app", "create", "shop")
	soon(t, "the other server does not know a new app", func() bool { return strings.Contains(b.cli("app", "list"), "shop") })
	a.cli("app", "delete", "shop")
	soon(t, "the other server knows a removed app", func() bool { return !strings.Contains(b.cli("app", "list"), "shop") })

	// A host that is revoked here is disconnected there.
	a.cli("hosts", "revoke", "0:127.0.0.13")
	b.online("127.0.0.13", false)
	a.online("127.0.0.13", false)
}

// soon waits a short time.
func soon(t *testing.T, failure string, done func() bool) {
	t.Helper()
	ft.Until(t, 30*time.Second, func() string { return failure }, done)
}

// TestServerDies: the hosts of a server that is killed go to another one, and operations on them go on.
func TestServerDies(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 3)
	a, b := i.servers[0], i.servers[1]
	agent := a.join("127.0.0.14")
	ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == 3 })
	for _, m := range i.servers {
		m.online("127.0.0.14", true)
	}

	// Kill the server of the agent, again and again.
	d := ft.NewDaemon(t, t.TempDir(), "web")
	spec := ft.J{"meta": ft.J{"namespace": "shop", "name": d.Name}, "hosts": []ft.J{host("127.0.0.14")}, "spec": d.Spec(nil)}
	for round := range 3 {
		victim := i.homeOf(agent)
		victim.Kill(syscall.SIGKILL)
		survivor := a
		if victim == a {
			survivor = b
		}
		ft.Until(t, time.Minute, agent.Output, func() bool { return i.homeOf(agent) != victim })
		survivor.online("127.0.0.14", true)

		spec["op_type"] = round % 2 // start, stop, start
		for key, e := range survivor.Await(survivor.Operate("operate_proc_v2", spec)) {
			if e.Code != 0 {
				t.Errorf("round %d: %s: %d %s", round, key, e.Code, e.Msg)
			}
		}
		victim.Again()
		victim.await()
	}
	if starts, stops := d.Count("start"), d.Count("stop"); starts != 2 || stops != 1 {
		t.Errorf("%d starts and %d stops, want 2 and 1", starts, stops)
	}
	for _, m := range i.servers {
		m.online("127.0.0.14", true)
	}
}
