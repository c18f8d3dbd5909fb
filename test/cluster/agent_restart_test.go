//go:build linux

package cluster_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestRestartAgentOfAnotherServer: an agent is restarted through the server that it is not connected to, and once more while its own
// server is killed. Each time it restarts once, both servers give the verdict, and its processes keep their pids.
func TestRestartAgentOfAnotherServer(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	const ip = "127.0.0.14"
	agent := i.servers[1].join(ip)
	ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == 2 })
	for _, m := range i.servers {
		m.online(ip, true)
	}
	d := ft.NewDaemon(t, t.TempDir(), "restarted")
	for key, e := range i.servers[0].Await(i.servers[0].Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "shop", "name": d.Name},
		"op_type": 0, "hosts": []ft.J{host(ip)}, "spec": d.Spec(nil)})) {
		if e.Code != 0 {
			t.Fatalf("%s: %+v", key, e)
		}
	}
	pid, daemon := agent.PID(), d.PID()

	// Restart it through the other server.
	otherThan := func(m *member) *member {
		if m == i.servers[0] {
			return i.servers[1]
		}
		return i.servers[0]
	}
	restart := func(through *member) string {
		t.Helper()
		began := strings.Count(agent.Output(), "agent started")
		out, err := through.try("hosts", "restart", ip, "--detach", "-o", "json")
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		_, id, _ := strings.Cut(out, `"task_id": "`)
		id, _, _ = strings.Cut(id, `"`)
		ft.Until(t, time.Minute, func() string { return "the agent has not restarted: " + agent.Output() }, func() bool {
			return strings.Count(agent.Output(), "agent started") == began+1
		})
		return id
	}
	settled := func(id string, readers ...*member) {
		t.Helper()
		for _, m := range readers {
			if out, err := m.try("task", id, "--timeout", "60s"); err != nil || !strings.Contains(out, "the agent restarted and runs version") {
				t.Errorf("%s: task %s: %v: %s", m.listen, id, err, out)
			}
		}
	}
	home := i.homeOf(agent)
	settled(restart(otherThan(home)), i.servers...)

	// Once more, and its server ends in the middle.
	ft.Until(t, time.Minute, agent.Output, func() bool { home = i.homeOf(agent); return home != nil })
	id := restart(otherThan(home))
	home.Kill(syscall.SIGKILL)
	settled(id, otherThan(home))
	home.Again()
	home.answers()
	settled(id, home)
	if n := strings.Count(agent.Output(), "agent started"); n != 3 {
		t.Errorf("the agent started %d times, want 3", n)
	}
	if agent.PID() != pid || d.PID() != daemon || d.Count("start") != 1 {
		t.Errorf("pids %d and %d became %d and %d after %d starts", pid, daemon, agent.PID(), d.PID(), d.Count("start"))
	}
}
