//go:build linux

package faults_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// shellDaemon is a daemon whose program is a renamed shell that runs a script. Its output is that of the start command.
func shellDaemon(t *testing.T, root, name, script string) *ft.Daemon {
	t.Helper()
	d := ft.NewDaemon(t, root, name)
	sh, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, name), sh, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Script("main.sh", script)
	d.Script("start.sh", "echo start >> calls\nsetsid ./"+name+" ./main.sh </dev/null &\necho $! > "+d.PIDFile())
	return d
}

// busy is a daemon that sleeps until burn(true) makes it use CPU.
func busy(t *testing.T, root, name string) (d *ft.Daemon, burn func(bool)) {
	t.Helper()
	d = shellDaemon(t, root, name, "while :; do [ -e burn ] || sleep 0.2; done >/dev/null 2>&1")
	file := filepath.Join(d.Dir, "burn")
	return d, func(on bool) {
		t.Helper()
		err := os.Remove(file)
		if on {
			err = os.WriteFile(file, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// P11: a process exceeds its limit. The agent acts after two samples in a row, reports which limit it was, and restarts
// the process. It leaves alone processes that are not supervised or not over their limits.
func TestP11OverLimit(t *testing.T) {
	const every = time.Second
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", "GOZZARD_SAMPLE_INTERVAL="+every.String())
	root := t.TempDir()
	hot, burnHot := busy(t, root, "gzhot")
	loose, burnLoose := busy(t, root, "gzloose")
	idle, _ := busy(t, root, "gzidle")
	first, burnFirst := busy(t, root, "gzpoolone")
	second, _ := busy(t, root, "gzpooltwo")
	endFirst(t, agent)

	limited := func(d *ft.Daemon, cpu float64) ft.J {
		spec := d.Spec(nil)
		spec["resource"] = ft.J{"cpu": cpu, "mem": 90.0}
		return spec
	}

	// Start three processes with a limit. loose is not supervised.
	for _, d := range []*ft.Daemon{hot, loose, idle} {
		must(t, operate(t, s.API, d, 0, limited(d, 10)), 0)
	}

	must(t, operate(t, s.API, loose, 4, limited(loose, 10)), 0)

	// The agent ends and restarts a supervised process over its limit.
	var found []time.Duration
	for range min(*scale, 5) {
		pid := hot.PID()
		began := time.Now()
		burnHot(true)
		ft.Until(t, 30*time.Second, func() string { return "nothing is done about it" },
			func() bool { return hot.PID() != pid })
		found = append(found, time.Since(began))
		burnHot(false)
		ft.Until(t, 30*time.Second, func() string { return "it does not come back" },
			func() bool { return hot.PID() > 0 })
	}

	var message string
	ft.Until(t, time.Minute, func() string { return "not reported: " + message }, func() bool {
		message = s.Status("faults", "gzhot", ft.Host(1))[0].Message
		return strings.Contains(message, "cpu") && strings.Contains(message, "limit of 10 %")
	})

	samples := percentile(found, 1).Seconds() / every.Seconds()
	fmt.Printf("fault P11: over its CPU limit, ended at most %.1f samples after it began, brought back %d of %d times: %q\n", samples, len(found), len(found), message)

	// The agent only reports one that is not supervised, and leaves an idle one alone.
	loosePID, idlePID := loose.PID(), idle.PID()
	burnLoose(true)
	var alert string
	ft.Until(t, 30*time.Second, func() string { return "not reported" }, func() bool {
		alert = s.Status("faults", "gzloose", ft.Host(1))[0].Message
		return strings.Contains(alert, "limit of 10 %")
	})

	time.Sleep(3 * every)
	burnLoose(false)
	fmt.Printf("fault P11: one that is not hosted was left alone: %v; an idle one: %v\n", loose.PID() == loosePID,
		idle.PID() == idlePID)

	if loose.PID() != loosePID || idle.PID() != idlePID || idle.Count("start") != 1 {
		t.Errorf("calls %v and %v", loose.Calls(), idle.Calls())
	}

	t.Run("pool", func(t *testing.T) {
		a := s.For(t)
		for _, d := range []*ft.Daemon{first, second} {
			task := a.Operate("operate_proc_v2", ft.J{"meta": ft.J{"namespace": "pool", "name": d.Name}, "op_type": 0,
				"spec": limited(d, 0), "hosts": host1})
			must(t, a.Await(task)["0:127.0.0.1:pool:"+d.Name], 0)
		}

		set := map[string]ft.Entry{}
		a.OK("set_process_group_info", ft.J{"meta": ft.J{"namespace": "pool"}, "hosts": []ft.J{ft.Host(1)},
			"spec": ft.J{"process_group": []ft.J{
				{"id": "p", "resource": ft.J{"cpu_pool_limit": 10, "mem_pool_limit": 90, "cpu_pool_weight": 0,
					"mem_pool_weight": 0}}}}}, &set)
		pid, other := first.PID(), second.PID()
		began := time.Now()
		burnFirst(true)

		ft.Until(t, 30*time.Second, func() string { return fmt.Sprintf("nothing is done about it: %v", set) },
			func() bool { return first.PID() != pid })

		took := time.Since(began)
		burnFirst(false)

		ft.Until(t, 30*time.Second, func() string { return "it does not come back" },
			func() bool { return first.PID() > 0 })

		fmt.Printf("fault P11: pool over its CPU limit, the one that used most ended %.1f samples after it began, the other left alone: %v\n", took.Seconds()/every.Seconds(), second.PID() == other)

		if second.PID() != other {
			t.Errorf("calls %v", second.Calls())
		}
	})
}

// P15: a process prints as fast as it can, without a line end. The agent's memory stays small, the disk does not fill
// up, and the process is not blocked.
func TestP15LogFlood(t *testing.T) {
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	const script = "while [ ! -e quit ]; do dd if=/dev/zero bs=1M count=16 status=none; echo x >> progress; done"
	watch := 3 * time.Second * time.Duration(min(*scale, 20))
	root := t.TempDir()
	alone := ft.NewDaemon(t, root, "gzalone")
	alone.Script("main.sh", strings.ReplaceAll(script, "status=none", "status=none of=plain"))
	d := shellDaemon(t, root, "gzflood", script)
	endFirst(t, agent)

	done := func(d *ft.Daemon) int {
		b, _ := os.ReadFile(filepath.Join(d.Dir, "progress"))
		return strings.Count(string(b), "x")
	}

	command(t, "sh", "-c", "cd '"+alone.Dir+"'; (sleep "+fmt.Sprint(watch.Seconds())+"; touch quit) & ./main.sh")
	must(t, operate(t, s.API, d, 0, d.Spec(nil)), 0)
	before, from := done(d), time.Now()
	var rss, disk int64
	stalls, last := 0, before
	for time.Since(from) < watch {
		time.Sleep(500 * time.Millisecond)
		rss, disk = max(rss, agent.RSS()), max(disk, occupied(t, agent.Flag("--data")))
		if n := done(d); n == last {
			stalls++
		} else {
			last = n
		}
	}

	wrote := 16 * float64(done(d)-before) / time.Since(from).Seconds()
	plain := 16 * float64(done(alone)) / watch.Seconds()
	write(t, filepath.Join(d.Dir, "quit"), nil)
	fmt.Printf("fault P15: %.0f MiB/s into the log (into a plain file, made anew every 16 MiB, %.0f), agent memory at most %d MiB, its folder at most %d MiB, %d half seconds without progress\n",
		wrote, plain, rss>>20, disk>>20, stalls)

	if wrote == 0 || rss > 64<<20 && !ft.Race {
		t.Error("see the line above")
	}

	must(t, operate(t, s.API, d, 8, d.Spec(nil)), 0)
}

// occupied is the size of the files in a folder.
func occupied(t *testing.T, dir string) (sum int64) {
	t.Helper()

	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // it was just removed
		}
		if fi, err := e.Info(); err == nil {
			sum += fi.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return sum
}
