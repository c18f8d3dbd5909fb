//go:build linux

package fleettest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTD17HealthChecksHaveFairTurns: a tenant has more slow health checks on a shared host than there are places, in one
// namespace and in many. The check of another tenant still runs at once and finds its process unhealthy: no slow check
// had to end first. The processes whose checks cannot begin say so.
func TestTD17HealthChecksHaveFairTurns(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.AwaitOnline(t, 1)
	root := newLoot(t).dir

	entry := func(d *ft.Daemon, namespace, health string, policy ft.J) ft.J {
		d.Script("health.sh", health)
		spec := d.Spec(policy)
		spec["control"].(ft.J)["health_cmd"] = "./health.sh"
		ft.Chown(t, d.Dir, d.User)
		return ft.J{"meta": ft.J{"namespace": namespace, "name": d.Name, "labels": ft.J{"proc_name": "x"}}, "op_type": 0,
			"hosts": []ft.J{ft.Host(1)}, "spec": spec}
	}
	start := func(entries ...ft.J) {
		t.Helper()
		for key, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": entries})) {
			if e.Code != 0 {
				t.Fatalf("%s: %+v", key, e)
			}
		}
	}

	// The greedy tenant has one account and takes every place that it gets.
	var greedy []*ft.Daemon
	var entries []ft.J
	for i := range 32 {
		d := ft.NewDaemon(t, root, fmt.Sprintf("gzgreedy%d", i))
		d.User = "nobody"
		namespace := "greedy"
		if i%2 == 1 {
			namespace = fmt.Sprintf("greedy-%d", i)
		}
		greedy = append(greedy, d)
		entries = append(entries, entry(d, namespace, "echo begun >> calls\nexec sleep 90",
			ft.J{"health_interval": 1, "health_timeout": 60}))
	}
	start(entries...)

	begun := func() (n int) {
		for _, d := range greedy {
			n += d.Count("begun")
		}
		return n
	}
	overdue := func() (n int) {
		for _, e := range entries {
			meta := e["meta"].(ft.J)
			for _, i := range s.Status(meta["namespace"].(string), meta["name"].(string), ft.Host(1)) {
				if strings.Contains(i.Message, "health not known since ") {
					n++
				}
			}
		}
		return n
	}
	ft.Until(t, 50*time.Second, func() string { return fmt.Sprintf("%d checks began, %d are overdue", begun(), overdue()) },
		func() bool { return begun() >= 12 && overdue() > 0 })

	// The modest tenant has one check, and its process is ill.
	modest := ft.NewDaemon(t, root, "gzmodest")
	modest.User = "daemon"
	start(entry(modest, "modest", "echo checked >> calls\necho ill\nexit 3",
		ft.J{"health_interval": 1, "health_threshold": 1}))
	ft.Until(t, 50*time.Second, func() string { return "the unhealthy process is not noticed" }, func() bool {
		all := s.Status("modest", "gzmodest", ft.Host(1))
		return len(all) == 1 && strings.Contains(all[0].Message, "unhealthy: health_cmd exited with 3: ill")
	})
	if n := begun(); n > 16 {
		t.Errorf("it was noticed only after slow checks had ended: %d have begun", n)
	}
}
