//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// host1 names the host of these tests as V2 callers do.
var host1 = []ft.J{{"ip": "127.0.0.1", "bk_cloud_id": 0}}

// operate runs one operation on a daemon and returns its entry.
func operate(t *testing.T, a *ft.API, d *ft.Daemon, op int, spec ft.J) ft.Entry {
	t.Helper()
	task := a.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": op,
		"spec": spec, "hosts": host1})
	return a.Await(task)["0:127.0.0.1:faults:"+d.Name]
}

func must(t *testing.T, e ft.Entry, code int) {
	t.Helper()
	if e.Code != code {
		t.Fatalf("wanted %d, got %+v", code, e)
	}
}

// startAll starts daemons in one task.
func startAll(t *testing.T, a *ft.API, ds []*ft.Daemon, policy ft.J) {
	t.Helper()
	var items []ft.J
	for _, d := range ds {
		items = append(items, ft.J{"meta": ft.J{"namespace": "faults", "name": d.Name}, "op_type": 0,
			"spec": d.Spec(policy), "hosts": host1})
	}
	for k, e := range a.Await(a.Operate("operate_proc_multi", ft.J{"proc_operate_req": items})) {
		if e.Code != 0 {
			t.Fatalf("%s: %+v", k, e)
		}
	}
}

func daemons(t *testing.T, prefix string, n int) []*ft.Daemon {
	root := t.TempDir()
	var ds []*ft.Daemon
	for i := range n {
		ds = append(ds, ft.NewDaemon(t, root, fmt.Sprintf("%s%d", prefix, i)))
	}
	return ds
}

func percentile(d []time.Duration, p float64) time.Duration {
	slices.Sort(d)
	return d[min(len(d)-1, int(p*float64(len(d))))]
}

func TestP1P2ProcessDies(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	n := min(30**scale, 400)
	ds := daemons(t, "gzp", n)
	startAll(t, s.API, ds, nil)
	var back []time.Duration
	for _, d := range ds {
		old := d.PID()
		ft.KillPID(t, old)
		began := time.Now()
		for d.PID() == old || d.PID() < 0 {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s is not restarted", d.Name)
			}
			time.Sleep(500 * time.Microsecond)
		}
		back = append(back, time.Since(began))
	}

	fmt.Printf("fault P1: %d of %d restarted, p50 %.1f ms, p99 %.1f ms after the kill\n", len(back), n,
		percentile(back, 0.5).Seconds()*1000, percentile(back, 0.99).Seconds()*1000)
	restarted := 0
	var seen []time.Duration
	for _, d := range ds {
		must(t, operate(t, s.API, d, 4, d.Spec(nil)), 0)
		starts := d.Count("start")
		ft.KillPID(t, d.PID())
		began := time.Now()
		ft.Until(t, 10*time.Second, func() string { return d.Name + " died and its status hides it" }, func() bool {
			return s.Status("faults", d.Name, ft.Host(1))[0].Status == 2
		})
		seen = append(seen, time.Since(began))
		if d.Count("start") != starts {
			restarted++
		}
	}

	fmt.Printf("fault P2: %d of %d unhosted processes restarted, death in status after p99 %.0f ms\n", restarted, n,
		percentile(seen, 0.99).Seconds()*1000)

	if restarted > 0 {
		t.Errorf("%d restarted", restarted)
	}
}

func TestP3P16P17P18StartFails(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")

	t.Run("P3", func(t *testing.T) {
		n := 5 * *scale
		right := 0
		d := ft.NewDaemon(t, t.TempDir(), "gzshort")
		d.Script("start.sh",
			"echo reading config >&2\necho no port left >&2\nsetsid ./gzshort 0.01 </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())

		for range n {
			if e := operate(t, s.For(t), d, 0, d.Spec(nil)); e.Code == 836 && strings.Contains(e.Msg, "no port left") {
				right++
			}
		}

		fmt.Printf("fault P3: %d of %d reported as 836 with the last lines\n", right, n)

		if right != n {
			t.Errorf("%d of %d", right, n)
		}
	})

	t.Run("P16", func(t *testing.T) {
		d := ft.NewDaemon(t, t.TempDir(), "gzhang")
		d.Script("restart.sh", "(setsid sleep 7654322 &) ; sleep 7654322")
		e := operate(t, s.For(t), d, 7, d.Spec(ft.J{"op_timeout": 1}))
		left := ft.CountArgs(t, "7654322")
		fmt.Printf("fault P16: a hanging command is %d, %d processes of it are left\n", e.Code, left)
		if e.Code != 65535 || left != 0 {
			t.Errorf("%+v, %d left", e, left)
		}
	})

	t.Run("P17", func(t *testing.T) {
		d := ft.NewDaemon(t, t.TempDir(), "gzbroken")
		files := map[string]string{
			"./missing.sh": "not found", "./plain.txt": "ermission denied", "./garbage.bin": "",
			"./nointerp.sh": "nterpreter", "./dir": "",
			"./exit7.sh": "7",
		}

		for name, text := range map[string]string{"plain.txt": "x", "garbage.bin": "\x7fELF\x02garbage",
			"nointerp.sh": "#!/no/such/interpreter\n", "exit7.sh": "#!/bin/sh\nexit 7\n"} {
			mode := os.FileMode(0o755)
			if name == "plain.txt" {
				mode = 0o644
			}
			if err := os.WriteFile(filepath.Join(d.Dir, name), []byte(text), mode); err != nil {
				t.Fatal(err)
			}
		}

		if err := os.Mkdir(filepath.Join(d.Dir, "dir"), 0o755); err != nil {
			t.Fatal(err)
		}

		clear := 0
		for cmd, want := range files {
			spec := d.Spec(nil)
			spec["control"] = ft.J{"start_cmd": cmd}
			e := operate(t, s.For(t), d, 0, spec)
			if e.Code == 65535 && e.Msg != "" && strings.Contains(e.Msg, want) || want == "nterpreter" &&
				strings.Contains(e.Msg, "not found") {
				clear++
			} else {
				t.Errorf("%s: %+v", cmd, e)
			}
		}

		fmt.Printf("fault P17: %d of %d broken programs reported with a clear error\n", clear, len(files))
	})

	t.Run("P18", func(t *testing.T) {
		d := ft.NewDaemon(t, t.TempDir(), "gzghost")
		d.User = "no-such-account"
		e := operate(t, s.For(t), d, 0, d.Spec(nil))
		fmt.Printf("fault P18: an unknown account is %d: %s\n", e.Code, e.Msg)
		if e.Code != 65535 || !strings.Contains(e.Msg, "no-such-account") || d.Count("start") != 0 {
			t.Errorf("%+v", e)
		}
	})
}

func TestP4P5Stop(t *testing.T) {
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")

	t.Run("P4", func(t *testing.T) {
		d := ft.NewDaemon(t, t.TempDir(), "gzstubborn")
		d.Script("loop.sh", "trap '' TERM\nwhile :; do sleep 0.1; done")
		d.Script("start.sh", "setsid sh ./loop.sh </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
		spec := d.Spec(nil)
		spec["identity"].(ft.J)["proc_name"] = "sh"
		spec["control"] = ft.J{"start_cmd": "./start.sh"}
		must(t, operate(t, s.For(t), d, 0, spec), 0)
		began := time.Now()
		must(t, operate(t, s.For(t), d, 1, spec), 0)
		took := time.Since(began)
		fmt.Printf("fault P4: a process that ignores TERM was stopped after %.1f s (stop_check_secs 1)\n",
			took.Seconds())

		if n := ft.CountArgs(t, d.Dir); n != 0 {
			t.Errorf("%d left", n)
		}
	})

	t.Run("P5", func(t *testing.T) {
		n := 5 * *scale
		left := 0
		d := ft.NewDaemon(t, t.TempDir(), "gzdouble")
		if err := os.Link(filepath.Join(d.Dir, "gzdouble"), filepath.Join(d.Dir, "gzhelper")); err != nil {
			t.Fatal(err)
		}

		d.Script("start.sh",
			"(setsid ./gzhelper 1000000 </dev/null >/dev/null 2>&1 & (setsid ./gzdouble 1000000 </dev/null >/dev/null 2>&1 & echo $! > "+d.PIDFile()+") )")

		for range n {
			must(t, operate(t, s.For(t), d, 0, d.Spec(nil)), 0)
			must(t, operate(t, s.For(t), d, 1, d.Spec(nil)), 0)
			left += d.Copies() + ft.CountArgs(t, "gzhelper\x001000000")
		}

		fmt.Printf("fault P5: %d double-forked daemons with a helper each stopped, %d processes left\n", n, left)

		if left > 0 {
			t.Errorf("%d left", left)
		}
	})
}

func TestP8CrashLoop(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "gzloop")
	must(t, operate(t, s.API, d, 0, d.Spec(nil)), 0)
	d.Script("start.sh", "echo start >> calls; echo port in use; exit 1")

	ft.KillPID(t, d.PID())

	watch := 15 * time.Second * time.Duration(min(*scale, 20))
	cpu := agent.CPU()
	time.Sleep(watch)
	used := agent.CPU() - cpu
	// A slow machine may need longer to see the loop.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("no crash loop: %v", d.Calls()) }, func() bool {
		return d.Count("start") > 2 && strings.Contains(s.Status("faults", "gzloop", ft.Host(1))[0].Message, "crash loop")
	})
	row := s.Status("faults", "gzloop", ft.Host(1))[0]
	starts := d.Count("start") - 1
	fmt.Printf("fault P8: %d starts in %s of a crash loop, agent CPU %.2f %%, message %q\n", starts, watch,
		100*used.Seconds()/watch.Seconds(), row.Message)

	if !strings.Contains(row.Message, "crash loop") || starts < 2 || starts > 14 {
		t.Errorf("%d starts, %+v", starts, row)
	}

	d.Script("start.sh", "setsid ./gzloop 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
	must(t, operate(t, s.API, d, 0, d.Spec(nil)), 0)

	if row := s.Status("faults", "gzloop", ft.Host(1))[0]; row.Message != "" || row.Status != 1 {
		t.Errorf("a manual start does not reset the loop: %+v", row)
	}
}

// P14: whatever a pid file says, no other process gets a signal and the agent does not hang.
func TestP14HostilePIDFiles(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	victim := ft.NewDaemon(t, t.TempDir(), "gzvictim")
	must(t, operate(t, s.API, victim, 0, victim.Spec(nil)), 0)
	pid := victim.PID()
	d := ft.NewDaemon(t, t.TempDir(), "gzhostile")
	spec := d.Spec(nil)
	spec["control"] = ft.J{"start_cmd": "./start.sh"} // stop and kill use signals

	hostile := map[string]func() error{
		"foreign pid": func() error { return os.WriteFile(d.PIDFile(), fmt.Appendf(nil, "%d\n", pid), 0o644) },
		"pid 1":       func() error { return os.WriteFile(d.PIDFile(), []byte("1"), 0o644) },
		"minus one":   func() error { return os.WriteFile(d.PIDFile(), []byte("-1"), 0o644) },
		"zero":        func() error { return os.WriteFile(d.PIDFile(), []byte("0"), 0o644) },
		"words":       func() error { return os.WriteFile(d.PIDFile(), []byte("12 ; reboot"), 0o644) },
		"empty":       func() error { return os.WriteFile(d.PIDFile(), nil, 0o644) },
		"huge": func() error {
			return errorsFirst(os.WriteFile(d.PIDFile(), []byte("7"), 0o644), os.Truncate(d.PIDFile(), 1<<30))
		},
		"link":      func() error { return os.Symlink(victim.PIDFile(), d.PIDFile()) },
		"fifo":      func() error { return syscall.Mkfifo(d.PIDFile(), 0o644) },
		"folder":    func() error { return os.Mkdir(d.PIDFile(), 0o755) },
		"the agent": func() error { return os.WriteFile(d.PIDFile(), fmt.Appendf(nil, "%d", os.Getpid()), 0o644) },
	}

	defer func() { _ = os.RemoveAll(d.PIDFile()) }() // with a FIFO the clean-up would wait for a writer
	signalled, tried := 0, 0
	for name, lay := range hostile {
		for _, op := range []int{1, 9} {
			if err := errorsFirst(os.RemoveAll(d.PIDFile()), lay()); err != nil {
				t.Fatal(err)
			}
			tried++
			e := operate(t, s.API, d, op, spec)
			if e.Code == 0 || victim.PID() != pid {
				signalled++
				t.Errorf("%s, op %d: %+v, victim %d was %d", name, op, e, victim.PID(), pid)
			}
		}
	}

	fmt.Printf("fault P14: %d operations on hostile pid files, %d foreign signals\n", tried, signalled)
}

func errorsFirst(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
