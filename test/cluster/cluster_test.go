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
	agent := b.join("127.0.0.13")
	a.online("127.0.0.13", true)

	// An app that is made here can be used there, and not any more when it is removed.
	a.cli("app", "create", "shop")
	soon(t, "the other server does not know a new app", func() bool { return strings.Contains(b.cli("app", "list"), "shop") })
	a.cli("app", "delete", "shop", "--yes")
	soon(t, "the other server knows a removed app", func() bool { return !strings.Contains(b.cli("app", "list"), "shop") })

	// A host that is revoked here is disconnected there.
	id := ""
	for _, line := range strings.Split(agent.Output(), "\n") {
		if _, rest, ok := strings.Cut(line, `"agent started","agent":"`); ok {
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	if id == "" {
		t.Fatalf("no id in %s", agent.Output())
	}
	a.cli("agent", "revoke", id, "--yes")
	b.online("127.0.0.13", false)
	a.online("127.0.0.13", false)
}

// soon waits a short time.
func soon(t *testing.T, failure string, done func() bool) {
	t.Helper()
	ft.Until(t, 30*time.Second, func() string { return failure }, done)
}

// TestServerDies: a server that is killed leaves the others unharmed, and its hosts are known again when it is back.
func TestServerDies(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	a.join("127.0.0.14")
	b.join("127.0.0.15")
	b.online("127.0.0.14", true)

	a.Kill(syscall.SIGKILL)
	b.online("127.0.0.14", false)
	out, err := b.try("run", "--name", "orphan", "--host", "127.0.0.14", "--user", "root", "--", "sleep", "1000")
	if err == nil || !strings.Contains(out, "offline") {
		t.Errorf("on a host without a server: %v %s", err, out)
	}
	out = b.cli("run", "--name", "stays", "--host", "127.0.0.15", "--user", "root", "--", "sleep", "1000")
	if !strings.Contains(out, "1 done of 1") {
		t.Errorf("on a host of the other server: %s", out)
	}

	a.Again()
	a.await()
	for _, m := range i.servers {
		m.online("127.0.0.14", true)
		m.online("127.0.0.15", true)
	}
	for n, m := range i.servers {
		out := m.cli("run", "--name", fmt.Sprintf("back%d", n), "--host", "127.0.0.14", "--user", "root", "--", "sleep", "1000")
		if !strings.Contains(out, "1 done of 1") {
			t.Errorf("through %s: %s", m.listen, out)
		}
	}
	for _, name := range []string{"back0", "back1", "stays"} {
		b.cli("stop", name)
	}
}
