//go:build linux

package fleettest_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// simHosts names the first n simulated hosts as V1 callers do.
func simHosts(n int) []ft.J {
	hosts := make([]ft.J, n)
	for i := range hosts {
		hosts[i] = ft.J{"ip": fmt.Sprintf("127.1.%d.%d", 1+i/250, 1+i%250), "bk_cloud_id": 0, "bk_supplier_id": 0}
	}
	return hosts
}

var manyHosts = flag.Int("fleettest.hosts", 1100, "simulated hosts of TestManyHosts")

// TestManyHosts operates a fleet of more hosts than one page of sync_proc_status has rows.
func TestManyHosts(t *testing.T) {
	n := *manyHosts
	s := ft.StartServer(t, "", "--log-level", "warn")
	s.StartSim(t, n)
	hosts := simHosts(n)
	var agents map[string]struct {
		Alive int `json:"bk_agent_alive"`
	}
	online := func() int {
		agents = nil
		s.OK("get_agent_status", ft.J{"hosts": hosts}, &agents)
		alive := 0
		for _, a := range agents {
			alive += a.Alive
		}
		return alive
	}

	ft.Until(t, 5*time.Minute, func() string { return fmt.Sprintf("%d of %d hosts are online", online(), n) },
		func() bool { return online() == n })

	// Register a process on every host.
	meta := ft.J{"namespace": "sim", "name": "game"}
	spec := ft.J{"identity": ft.J{"proc_name": "game", "setup_path": "/srv/game", "pid_path": "/srv/game/pid",
		"user": "root"},
		"control": ft.J{"start_cmd": "ok", "stop_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10},
		"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0}}
	registered := map[string]ft.Entry{}
	s.OK("update_proc_info", ft.J{"meta": meta, "hosts": hosts, "spec": spec}, &registered)

	for k, e := range registered {
		if e.Code != 0 && !notYet(e) {
			t.Fatalf("%s: %+v", k, e)
		}
	}

	// A host may also be unreachable there for longer than an operation waits. Then the verdict says that nothing was
	// done, and the next try does it.
	ask := hosts
	for try := 1; len(ask) > 0; try++ {
		task := s.Operate("operate_proc", ft.J{"meta": meta, "op_type": 0, "hosts": ask})
		res := verdicts(t, s.API, task)
		if len(res) != len(ask) {
			t.Fatalf("%d entries of %d", len(res), len(ask))
		}
		ask = notExecuted(t, s, ask, res)
		if len(ask) > n/20 || try == 5 {
			t.Fatalf("%d hosts were out of reach at try %d", len(ask), try)
		}
		if len(ask) > 0 {
			t.Logf("%d hosts were out of reach at try %d", len(ask), try)
			ft.Until(t, 5*time.Minute, func() string { return fmt.Sprintf("%d of %d hosts are online", online(), n) },
				func() bool { return online() == n })
		}
	}

	// Read the status by hosts, then page by page. A report comes a moment after the verdict.
	wrong := ""
	ft.Until(t, 2*time.Minute, func() string { return wrong }, func() bool {
		wrong = wrongRow(s.Status("sim", "game", hosts...), hosts)
		return wrong == ""
	})

	var page struct {
		Count int
		Infos []ft.Info `json:"proc_infos"`
	}
	seen := map[string]bool{}
	for start := 0; start < n; start += 1000 {
		s.OK("sync_proc_status", ft.J{"meta": ft.J{"namespace": "sim"}, "page": ft.J{"start": start, "limit": 1000}},
			&page)
		for _, r := range page.Infos {
			seen[r.Host.IP] = true
		}
	}

	if page.Count != n || len(seen) != n {
		t.Fatalf("count %d, %d different hosts", page.Count, len(seen))
	}
}

// wrongRow describes the first host that is not shown with its supervised process, "" if all are.
func wrongRow(rows []ft.Info, hosts []ft.J) string {
	if len(rows) != len(hosts) {
		return fmt.Sprintf("%d rows", len(rows))
	}
	for i, r := range rows {
		if r.Status != 1 || r.Flag != 1 || !r.IsAuto || r.PID <= 1 || r.Host.IP != hosts[i]["ip"] {
			return fmt.Sprintf("row %d: %+v", i, r)
		}
	}
	return ""
}

// notYet: on two slow cores an answer may end its wait before the verdict of the fleet. The verdict comes later then.
func notYet(e ft.Entry) bool {
	return e.Code == 115 || e.Code == 117 && strings.Contains(e.Msg, "not known yet")
}

// verdicts waits until every verdict of a task is known.
func verdicts(t *testing.T, api *ft.API, task string) (res map[string]ft.Entry) {
	t.Helper()
	api.Await(task)
	ft.Until(t, 5*time.Minute, func() string { return "some verdicts stay unknown" }, func() bool {
		res = api.Results(task)
		return !slices.ContainsFunc(slices.Collect(maps.Values(res)), notYet)
	})
	return res
}

// notExecuted returns the hosts whose verdict is that nothing was done, and checks that this is true. Any other verdict
// must be a success.
func notExecuted(t *testing.T, s *ft.Server, asked []ft.J, res map[string]ft.Entry) (left []ft.J) {
	t.Helper()

	for _, h := range asked {
		k := fmt.Sprintf("0:0:%s:sim:game", h["ip"])
		switch e, ok := res[k]; {
		case !ok:
			t.Fatalf("no entry %s", k)
		case (e.Code == 117 || e.Code == 65535) && strings.HasPrefix(e.Msg, "not executed"): // away, or busy
			if rows := s.Status("sim", "game", h); len(rows) == 1 && rows[0].Status == 1 {
				t.Fatalf("%s: %+v, but it runs", k, e)
			}
			left = append(left, h)
		case e.Code != 0:
			t.Fatalf("%s: %+v", k, e)
		}
	}

	return left
}
