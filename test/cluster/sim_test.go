//go:build linux

package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
	"github.com/gozzard/gozzard/test/sim"
)

// TestSimulatedFleet: simulated hosts in two processes enrol at one server, spread over both, and do what each server asks for;
// some fail, some are slow, some lose their connections, and processes end by themselves. Results are read in pages, each
// page at the other server.
func TestSimulatedFleet(t *testing.T) {
	t.Parallel() // it mostly waits
	const hosts, half, failing = 24, 12, 0.25
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	token := a.token("token", "create", "--uses", fmt.Sprint(hosts))
	for first := 0; first < hosts; first += half {
		dir, err := os.MkdirTemp("", "gzsim")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		ft.Start(t, fmt.Sprint("sim", first), nil, "sim", "--hosts", fmt.Sprint(half), "--first", fmt.Sprint(first), "--enrol-url", a.Cred.URL,
			"--token-file", token, "--data", dir, "--server", a.agent+","+b.agent, "--processes", "2", "--failing", fmt.Sprint(failing),
			"--slow", "0.5", "--slow-by", "200ms", "--churn", "1", "--reconnects", "0.2")
	}

	// Both servers have hosts, and both know all of them.
	var page client.HostPage
	for _, m := range i.servers {
		ft.Until(t, 2*time.Minute, func() string { return fmt.Sprintf("%s knows %d hosts", m.listen, page.Count) }, func() bool {
			m.native("/api/v1/hosts?limit=100", &page)
			online := 0
			for _, h := range page.Hosts {
				if h.Online {
					online++
				}
			}
			return online == hosts
		})
	}
	ft.Until(t, 2*time.Minute, func() string { return "one server has all hosts: " + a.cli("servers", "-o", "json") }, func() bool {
		var list client.ServerList
		a.native("/api/v1/servers", &list)
		return len(list.Servers) == 2 && list.Servers[0].Agents > 0 && list.Servers[1].Agents > 0
	})

	// Operate on all of them through each server.
	var list []ft.J
	for n := range hosts {
		list = append(list, host(sim.Addr(0, n).IP.String()))
	}
	for round, m := range []*member{a, b} {
		name := fmt.Sprint("web", round)
		task := m.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "sim", "name": name}, "op_type": 0, "hosts": list,
			"spec": ft.J{"identity": ft.J{"proc_name": name, "setup_path": "/srv", "pid_path": "/srv/" + name, "user": "root"},
				"control": ft.J{"start_cmd": "ok", "stop_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10},
				"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0}}})
		seen := i.pages(task, round)
		if len(seen) != hosts {
			t.Errorf("round %d: %d results of %d hosts", round, len(seen), hosts)
		}
		for n := range hosts {
			want := map[bool]client.Verdict{true: client.Failed, false: client.Done}[sim.Chosen(n, failing)]
			if got := seen[sim.Addr(0, n).IP.String()]; got != want {
				t.Errorf("round %d: host %d: %s, want %s", round, n, got, want)
			}
		}
	}
}

// native reads an answer of the server's own API.
func (m *member) native(path string, into any) {
	m.i.t.Helper()
	code, body := m.Get(m.i.t, path)
	if code != 200 {
		m.i.t.Fatalf("%s: %d %s", path, code, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		m.i.t.Fatalf("%s: %v: %.300s", path, err, body)
	}
}

// pages waits for the end of a task and reads it in small pages, each at another server than the one before.
func (i *installation) pages(task string, turn int) map[string]client.Verdict {
	i.t.Helper()
	at := func() *member { turn++; return i.servers[turn%len(i.servers)] }
	ft.Until(i.t, 2*time.Minute, func() string { return "the task does not end" }, func() bool {
		var t client.Task
		at().native("/api/v1/tasks/"+task+"?show=none&wait=5s", &t)
		return t.Final
	})

	seen := map[string]client.Verdict{}
	for query := "limit=5"; ; {
		var t client.Task
		at().native("/api/v1/tasks/"+task+"?"+query, &t)
		for _, a := range t.Attempts {
			if _, twice := seen[a.Host.IP]; twice {
				i.t.Errorf("%s is listed twice", a.Host.IP)
			}
			seen[a.Host.IP] = a.Verdict
		}
		if t.Next == "" {
			return seen
		}
		query = "limit=5&cursor=" + t.Next
	}
}
