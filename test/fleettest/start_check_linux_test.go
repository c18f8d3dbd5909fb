package fleettest_test

import (
	"path/filepath"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestStartWithoutCheckIsQuick: a definition without a start check gets its verdict as soon as its program runs, and not
// after the second that a command in front gets otherwise. The machine may be busy, so one quick start of several is
// enough; each of them took more than a second before.
func TestStartWithoutCheckIsQuick(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	s.AwaitOnline(t, 1)
	dir := t.TempDir()

	meta := ft.J{"namespace": "shop", "name": "quick", "labels": ft.J{"proc_name": "sleep"}}
	spec := ft.J{"identity": ft.J{"proc_name": "sleep", "setup_path": dir, "user": "root",
		"pid_path": filepath.Join(dir, "pid")},
		"control":        ft.J{"start_cmd": "exec /bin/sleep 1000"},
		"resource":       ft.J{},
		"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0, "stop_check_secs": 5, "op_timeout": 20}}
	operate := func(op int) time.Duration {
		t.Helper()
		began := time.Now()
		body := ft.J{"meta": meta, "op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": spec}
		for key, e := range s.Await(s.Operate("operate_proc", body)) {
			if e.Code != 0 {
				t.Fatalf("%s: %+v", key, e)
			}
		}
		return time.Since(began)
	}

	var took []time.Duration
	for range 30 {
		took = append(took, operate(0))
		operate(1)
		if took[len(took)-1] < 900*time.Millisecond {
			return
		}
	}
	t.Errorf("no start has a verdict within 900 ms: %v", took)
}
