//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// P10: a process uses more memory than the kernel allows. The kernel kills it, and its status says so, with the reason.
func TestP10OutOfMemory(t *testing.T) {
	needs(t)
	mountOf(t, "memory")
	var machine syscall.Sysinfo_t
	if err := syscall.Sysinfo(&machine); err != nil {
		t.Fatal(err)
	}

	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "gzhog")
	signal := filepath.Join(d.Dir, "go")
	// tail keeps what it reads.
	d.Script("loop.sh",
		"while [ ! -e go ]; do sleep 0.02; done\nhead -c 300000000 /dev/zero > pipe &\nexec tail -c 200000000 < pipe")

	if err := syscall.Mkfifo(filepath.Join(d.Dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}

	d.Script("start.sh", "setsid sh ./loop.sh </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
	spec := d.Spec(ft.J{"start_check_secs": 0})
	spec["identity"].(ft.J)["proc_name"] = "sh"
	spec["control"] = ft.J{"start_cmd": "./start.sh"}
	spec["resource"] = ft.J{"cpu": 90.0,
		"mem": 100 * float64(64<<20) / float64(uint64(machine.Totalram)*uint64(machine.Unit)), "enforce": true}
	rounds, right := min(3**scale, 100), 0
	for range rounds {
		must(t, operate(t, s.For(t), d, 0, spec), 0)
		must(t, operate(t, s.For(t), d, 4, spec), 0) // so that it stays down and the test can inspect it
		if err := os.WriteFile(signal, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		row := s.Status("faults", d.Name, ft.Host(1))[0]
		ft.Until(t, time.Minute, func() string { return fmt.Sprintf("it lives: %+v", row) }, func() bool {
			row = s.Status("faults", d.Name, ft.Host(1))[0]
			return row.Status == 2
		})
		if strings.Contains(row.Message, "oom") {
			right++
		} else {
			t.Errorf("%+v", row)
		}
		if err := os.Remove(signal); err != nil {
			t.Fatal(err)
		}
	}

	fmt.Printf("fault P10: %d of %d reported as killed by the kernel for their memory\n", right, rounds)

	// A process that another one kills was not killed for its memory.
	must(t, operate(t, s.For(t), d, 0, spec), 0)
	must(t, operate(t, s.For(t), d, 4, spec), 0)
	row := s.Status("faults", d.Name, ft.Host(1))[0]
	ft.KillPID(t, row.PID)

	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("it lives: %+v", row) }, func() bool {
		row = s.Status("faults", d.Name, ft.Host(1))[0]
		return row.Status == 2
	})

	if strings.Contains(row.Message, "oom") {
		t.Errorf("%+v", row)
	}
}
