//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTD18CrashLoopIsHeld: a process ends all the time, and its definition asks for restarts without any pause. From the
// fourth on the agent starts it once a second at most, of each kind of its events ten a minute are reported one by one
// and the others as one with their number, and the log of the agent has as few lines about it.
func TestTD18CrashLoopIsHeld(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	s.AwaitOnline(t, 1)
	dir := newLoot(t).dir
	starts := filepath.Join(dir, "starts")

	// Start it. It runs long enough to be taken for the process and not for a command that has done its work.
	meta := ft.J{"namespace": "shop", "name": "loop", "labels": ft.J{"proc_name": "sleep"}}
	spec := ft.J{"identity": ft.J{"proc_name": "sleep", "setup_path": dir, "user": "nobody",
		"pid_path": filepath.Join(dir, "pid")},
		"control":  ft.J{"start_cmd": "echo $$ > pid; date +%s%N >> starts; exec sleep 0.2", "stop_cmd": "true"},
		"resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0, "start_interval": 0,
			"start_retries": 100000, "op_timeout": 20}}
	operate := func(op int) {
		t.Helper()
		body := ft.J{"meta": meta, "op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": spec}
		for key, e := range s.Await(s.Operate("operate_proc", body)) {
			if e.Code != 0 {
				t.Fatalf("%s: %+v", key, e)
			}
		}
	}
	operate(3) // supervise it

	// Wait until it has ended more often than events are reported one by one.
	at := func() (out []int64) {
		text, _ := os.ReadFile(starts)
		for _, line := range strings.Fields(string(text)) {
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
		return out
	}
	ft.Until(t, 2*time.Minute, func() string { return fmt.Sprintf("it was started %d times", len(at())) },
		func() bool { return len(at()) >= 20 })

	// Look at the pauses, the events and the lines.
	all := at()
	for i := 5; i < len(all); i++ {
		if pause := time.Duration(all[i] - all[i-1]); pause < 700*time.Millisecond {
			t.Errorf("start %d came %v after the one before", i+1, pause)
		}
	}
	if n := len(crashEvents(t, s, "exited")); n > 10 {
		t.Errorf("%d single events about exits", n)
	}
	if n := strings.Count(agent.Output(), "process is down and will be started again"); n == 0 || n > 10 {
		t.Errorf("%d lines of the log are about restarts", n)
	}

	// What was merged is reported when the process goes.
	operate(4) // supervise it no longer
	s.OK("unregister_proc_info", ft.J{"meta": meta, "hosts": []ft.J{ft.Host(1)}}, nil)
	ft.Until(t, 30*time.Second, func() string { return fmt.Sprint(crashEvents(t, s, "exited")) }, func() bool {
		events := crashEvents(t, s, "exited")
		return len(events) > 0 && strings.Contains(events[len(events)-1], "events of this kind within a minute, the last: ")
	})
}

// crashEvents gives the messages of the events of a kind.
func crashEvents(t *testing.T, s *ft.Server, kind string) (out []string) {
	t.Helper()
	_, body := s.Get(t, "/api/v1/events?namespace=shop&name=loop&limit=1000&kind="+kind)
	var page struct {
		Events []struct {
			Message string `json:"message"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, e := range page.Events {
		out = append(out, e.Message)
	}
	return out
}
