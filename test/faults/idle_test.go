//go:build linux

package faults_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

var idleTime = flag.Duration("faults.idle", 5*time.Second, "how long P11 looks for false alarms")

// P11: processes within their limits are left alone, however busy other processes keep the machine.
func TestP11Idle(t *testing.T) {
	t.Parallel()
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", "GOZZARD_SAMPLE_INTERVAL=1s")
	ds := daemons(t, "gzcalm", 20)
	endFirst(t, agent)
	var items []ft.J
	for _, d := range ds {
		spec := d.Spec(nil)
		spec["resource"] = ft.J{"cpu": 2.0, "mem": 1.0, "fd": 64, "disk": 1 << 20, "net": 1 << 20}
		items = append(items, ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": 0, "spec": spec,
			"hosts": host1})
	}

	for k, e := range s.Await(s.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) {
		if e.Code != 0 {
			t.Fatalf("%s: %+v", k, e)
		}
	}

	pids := map[string]int{}
	for _, d := range ds {
		pids[d.Name] = d.PID()
	}

	time.Sleep(*idleTime)
	alarms := 0
	for _, d := range ds {
		row := s.Status("faults", d.Name, ft.Host(1))[0]
		if row.PID != pids[d.Name] || row.Message != "" || d.Count("start") != 1 || len(d.Calls()) != 1 {
			alarms++
			t.Errorf("%+v, was %d; calls %v", row, pids[d.Name], d.Calls())
		}
	}

	fmt.Printf("fault P11: %d false alarms among %d idle processes in %s, sampled every second\n", alarms, len(ds),
		*idleTime)
}
