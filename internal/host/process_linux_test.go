package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestFindChoosesInTheGroup(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("网关"), f.spec("网关服务-长名字")
	path := f.program("网关服务-长名字")
	first := f.daemon(k, s, path+" 300")
	// The kernel counts a start in hundredths of a second since the boot, whose time is rounded.
	if !first.ByCgroup || first.StartedAt.After(time.Now().Add(time.Second)) || time.Since(first.StartedAt) > time.Minute {
		t.Errorf("%+v", first)
	}

	f.run(k, s, true, "sleep 0.05; "+path+" 300 & echo $! >"+f.dir+"/second.pid")
	second := readPID(t, f.dir+"/second.pid")
	f.kills(second)
	got, err := look(f.Host, k, s)
	if err != nil || got.Proc != first.Proc {
		t.Errorf("the oldest is %+v, got %+v (%v)", first, got, err)
	}

	s.Identity.PIDPath = f.dir + "/second.pid"
	f.eventually("the pid file chooses", func() bool {
		got, err = look(f.Host, k, s)
		return err == nil && got.Proc.PID == second && got.ByCgroup
	})

	s.Identity.ProcName = "other"
	got, err = look(f.Host, k, s)
	if err != nil || !got.Proc.IsZero() || !strings.Contains(got.Reason, "definition says other") {
		t.Errorf("%+v %v", got, err)
	}

	// Once the start is over, what was started is the process, whatever its name is.
	got, err = f.Find(supervise.Query{Key: k, Spec: s})
	if err != nil || got.Proc != first.Proc || !strings.Contains(got.Misfit, "definition says other") {
		t.Errorf("%+v %v", got, err)
	}
}

func TestFindDoesNotTakeTheCommandForTheProcess(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("svc")
	path := f.program("svc")
	// a foreground program that the shell executed, and a version command
	for _, keeps := range []bool{true, false} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = f.Run(t.Context(), supervise.Run{Key: k, Spec: s,
				Command: "echo $$ >shell.pid; exec " + path + " 0.5", Timeout: time.Minute, Keeps: keeps})
		}()
		f.eventually("the shell has become the program", func() bool {
			b, err := os.ReadFile(f.dir + "/shell.pid")
			if err != nil {
				return false
			}
			st, err := proc.Stat(atoi(b))
			return err == nil && st.Comm() == "svc"
		})
		if got, err := look(f.Host, k, s); err != nil || !got.Proc.IsZero() {
			t.Errorf("keeps %v: %+v %v", keeps, got, err)
		}
		<-done
		if err := os.Remove(f.dir + "/shell.pid"); err != nil {
			t.Fatal(err)
		}
	}
}

func atoi(b []byte) int {
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return -1
	}
	return n
}

func TestFindByPIDFile(t *testing.T) {
	f := newHost(t, noCgroups)
	k, s := f.key("a"), f.spec("svc")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	p := f.byHand(f.program("svc"))
	found, err := look(f.Host, k, s)
	if err != nil || found.Proc != p || found.ByCgroup || found.Verdict != identity.Adopted ||
		found.How != identity.HowPIDFile {
		t.Errorf("%+v %v", found, err)
	}

	s.Identity.ProcName = ""
	if got, err := look(f.Host, k, s); err != nil || got.Proc != p {
		t.Errorf("without a name the pid file decides: %+v %v", got, err)
	}

	s.Identity.ProcName = "nginx"
	got, err := look(f.Host, k, s)
	want := "its pid file names pid " + strconv.Itoa(p.PID) + ", which runs as svc, definition says nginx"
	if err != nil || !strings.Contains(got.Reason, want) || got.Verdict != identity.Foreign {
		t.Errorf("%+v %v, want %s", got, err, want)
	}

	// A process that began after its file was written has the pid of another one.
	s.Identity.ProcName = "svc"
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(s.Identity.PIDPath, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	got, err = look(f.Host, k, s)
	if err != nil || got.Verdict != identity.Foreign || !strings.Contains(got.Reason, "began after the file was written") {
		t.Errorf("%+v %v", got, err)
	}
}

func TestFindRefusesHostilePIDFiles(t *testing.T) {
	f := newHost(t)
	path := filepath.Join(f.dir, "x.pid")
	text := func(s string) func() error {
		return func() error { return os.WriteFile(path, []byte(s), 0o644) }
	}

	for _, c := range []struct {
		name, reason string
		make         func() error
	}{
		{"missing", "does not exist", func() error { return nil }},
		{"symlink", "symbolic link", func() error {
			if err := os.WriteFile(path+".real", []byte("1"), 0o644); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		}},
		{"fifo", "not a regular file", func() error { return syscall.Mkfifo(path, 0o644) }},
		{"folder", "not a regular file", func() error { return os.Mkdir(path, 0o755) }},
		{"huge", "at most 4096", func() error {
			if err := os.WriteFile(path, []byte("12"), 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		}},
		{"empty", "is empty", text("")},
		{"garbage", "does not hold a process id", text("12abc\n")},
		{"negative", "does not hold a process id", text("-1")},
		{"all of a group", "does not hold a process id", text("0")},
		{"init", "does not hold a process id", text("1\n")},
		{"too large", "does not hold a process id", text("4194305")},
		{"overflow", "does not hold a process id", text("18446744073709551618")},
		{"two", "does not hold a process id", text("12 13")},
		{"long line", "does not hold a process id", text("12" + strings.Repeat(" ", 40) + "13\n")},
		{"self", "not a process to be managed", text(strconv.Itoa(os.Getpid()))},
		{"kernel thread", "thread of the kernel", text("2")},
		{"nobody there", "does not run", text("4194304")},
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		if c.name == "kernel thread" {
			if st, err := proc.Stat(2); err != nil || !st.Kernel() {
				continue // in a pid namespace there are none
			}
		}
		s := f.spec("")
		s.Identity.PIDPath = path
		got, err := look(f.Host, f.key("a"), s)
		if err != nil || !got.Proc.IsZero() || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
	}
}

func TestFindLooksAtOwners(t *testing.T) {
	needsRoot(t)
	f := newHost(t, noCgroups)
	k, s := f.key("a"), f.spec("svc")
	s.Identity.PIDPath, s.Identity.User = f.dir+"/daemon.pid", "root"
	p := f.byHand(f.program("svc"))

	if err := os.Chown(s.Identity.PIDPath, 65534, 65534); err != nil {
		t.Fatal(err)
	}

	got, err := look(f.Host, k, s)
	if err != nil || !strings.Contains(got.Reason, "belongs to uid 65534") {
		t.Errorf("a stranger's pid file: %+v %v", got, err)
	}

	s.Identity.User = "nobody"
	got, err = look(f.Host, k, s)
	if err != nil || !strings.Contains(got.Reason, "which runs as user root, definition says user nobody") {
		t.Errorf("nobody names a process of root (%d): %+v %v", p.PID, got, err)
	}

	s.Identity.User = "no-such-user-here"
	got, err = look(f.Host, k, s)
	if err != nil || got.Reason != "user no-such-user-here: no such user on this host" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestPIDFileText(t *testing.T) {
	for s, want := range map[string]int{"2": 2, "42\n": 42, "  4194304 \r\n": 4194304, "": 0, "01": 0, "1": 0,
		"+5": 0, "4194305": 0, "5\x00": 0, "4437\n/var/lib/data\n1789\n": 4437, "4437 12\n": 0, "words\n4437": 0} {
		if got, ok := host.ParsePID([]byte(s)); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d %v", s, got, ok)
		}
	}
}

func TestIdentityIsMoreThanThePID(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("svc")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	p := f.daemon(k, s, f.program("svc")+" 300").Proc
	later, otherBoot := p, p
	later.Start++
	otherBoot.BootID = "another"
	for name, x := range map[string]supervise.Proc{"later process with the pid": later,
		"process before the reboot": otherBoot, "none": {}} {
		if f.Alive(x) {
			t.Errorf("%s is alive", name)
		}
		if err := f.Signal(x, supervise.SignalKill); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: signal gave %v", name, err)
		}
		if _, err := f.Inspect(x); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: inspect gave %v", name, err)
		}
		gone := make(chan supervise.Exit, 1)
		if _, err := f.Watch(x, func(e supervise.Exit) { gone <- e }); err != nil {
			t.Errorf("%s: watch gave %v", name, err)
		} else if e := <-gone; e.Known {
			t.Errorf("%s: exit %+v", name, e)
		}
		if u := f.Sample([]supervise.Proc{x}); u[0] != (supervise.Usage{}) {
			t.Errorf("%s: usage %+v", name, u)
		}
	}

	if !f.Alive(p) {
		t.Error("the process was killed")
	}
}

func TestWatchOfANonChild(t *testing.T) {
	for name, change := range map[string]func(*host.Host){"pidfd": func(*host.Host) {},
		"by looking": host.ForgetPidfd} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t)
			change(f.Host)
			k, s := f.key("a"), f.spec("svc")
			s.Identity.PIDPath = f.dir + "/daemon.pid"
			p := f.daemon(k, s, f.program("svc")+" 300").Proc
			calls := make(chan supervise.Exit, 8)
			stop, err := f.Watch(p, func(e supervise.Exit) { calls <- e })
			if err != nil {
				t.Fatal(err)
			}

			unwanted, err := f.Watch(p, func(supervise.Exit) { t.Error("called after its end") })
			if err != nil {
				t.Fatal(err)
			}

			unwanted()
			unwanted()

			if err := f.Signal(p, supervise.SignalTerm); err != nil {
				t.Fatal(err)
			}

			select {
			case <-calls:
			case <-time.After(20 * time.Second):
				t.Fatal("exit was not noticed")
			}

			if f.Alive(p) {
				t.Error("alive after its exit")
			}

			stop()

			if len(calls) != 0 {
				t.Error("called twice")
			}
			if err := f.Signal(p, supervise.SignalTerm); !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		})
	}
}

func TestWatchAfterClose(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("svc")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	p := f.daemon(k, s, f.program("svc")+" 300").Proc
	stop, err := f.Watch(p, func(supervise.Exit) { t.Error("called after Close") })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}

	stop()

	if _, err := f.Watch(p, func(supervise.Exit) {}); err == nil {
		t.Error("a closed host watches")
	}
	if !f.Alive(p) {
		t.Error("Close touched the process")
	}
	if _, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: "exit 0",
		Timeout: time.Second}); err == nil {
		t.Error("a closed host runs commands")
	}
}

func TestSampleAndInspect(t *testing.T) {
	f := newHost(t)
	k, s := f.key("忙"), f.spec("busy")
	script := filepath.Join(f.dir, "busy")
	text := "#!/bin/sh\nexec 8</dev/null 9</dev/null\n(while :; do :; done) &\nwait\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}

	s.Identity.PIDPath = f.dir + "/daemon.pid"
	p := f.daemon(k, s, script+" 参数").Proc
	t.Cleanup(func() { // its child
		pids, _ := proc.PIDs(nil)
		for _, pid := range pids {
			if st, err := proc.Stat(pid); err == nil && st.PPID == p.PID && f.Alive(p) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})

	quiet := f.spec("idle")
	quiet.Identity.PIDPath = f.dir + "/daemon.pid"
	idle := f.daemon(f.key("静"), quiet, f.program("idle")+" 300").Proc
	f.Sample([]supervise.Proc{p})
	var u []supervise.Usage
	f.eventually("a busy child is seen", func() bool {
		u = f.Sample([]supervise.Proc{idle, p, {}})
		return u[1].CPU > 0 && u[1].Procs == 2
	})

	busy := u[1]
	if busy.CPU > 100 || busy.Mem <= 0 || busy.Mem > 100 || busy.MemKB <= 0 || busy.FD < 8 {
		t.Errorf("busy: %+v", busy)
	}
	if u[0].Procs != 1 || u[0].FD < 3 || u[0].MemKB <= 0 || u[2] != (supervise.Usage{}) {
		t.Errorf("idle: %+v, none: %+v", u[0], u[2])
	}

	d, err := f.Inspect(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(d.Cmdline, "/busy 参数") || d.PID != p.PID || d.Stat != "S" || d.Threads != 1 ||
		d.MemKB <= 0 || d.Elapsed < 0 {
		t.Errorf("%+v", d)
	}

	if age := time.Now().Unix() - d.StartedAt; age < 0 || age > 60 {
		t.Errorf("started %d s ago", age)
	}
}

func TestSubreaperLearnsExitsAndStealsNone(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()

	if err := f.BecomeSubreaper(); err != nil {
		t.Skip(err)
	}

	k, s := f.key("a"), f.spec("sh")
	f.run(k, s, true, "(setsid sh -c 'echo $$ >"+f.dir+"/daemon.pid; sleep 0.3; exit 7' &)")
	var found supervise.Found
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	f.eventually("the daemon is found", func() bool {
		var err error
		found, err = look(f.Host, k, s)
		return err == nil && !found.Proc.IsZero()
	})

	exit := make(chan supervise.Exit, 1)
	if _, err := f.Watch(found.Proc, func(e supervise.Exit) { exit <- e }); err != nil {
		t.Fatal(err)
	}

	for i := range 20 { // with commands that run at the same time
		host.Tidy(f.Host)
		if res := f.run(k, s, false, "(true &) ; exit "+strconv.Itoa(i)); res.ExitCode != i {
			t.Errorf("%d: %+v", i, res)
		}
	}

	select {
	case e := <-exit:
		if !e.Known || e.Code != 7 {
			t.Errorf("%+v", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("exit was not noticed")
	}

	f.eventually("no zombies of ours are left", func() bool {
		host.Tidy(f.Host)
		return f.zombies() == 0
	})
}

// P12: very many orphans are collected, and no exit status of a command is collected by mistake.
func TestP12OrphanStorm(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()

	if err := f.BecomeSubreaper(); err != nil {
		t.Skip(err)
	}

	const storm, commands = 500, 40
	done := make(chan error, 1)
	k, s := f.key("storm"), f.spec("x")
	go func() {
		_, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s,
			Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do (true &); i=$((i+1)); done", storm), Keeps: true})
		done <- err
	}()

	wrong := 0
	for i := range commands {
		if res := f.run(f.key("other"), s, false, "(true &); exit "+strconv.Itoa(i)); res.ExitCode != i {
			wrong++
		}
	}

	if err := <-done; err != nil {
		t.Error(err)
	}

	began := time.Now()
	f.eventually("no zombies are left", func() bool { return f.zombies() == 0 })
	t.Logf("P12: %d orphans, %d wrong exit codes in %d, no zombies after %v", storm, wrong, commands,
		time.Since(began).Round(time.Millisecond))

	if wrong > 0 {
		t.Errorf("%d exit codes of %d are wrong", wrong, commands)
	}
}

// zombies counts the ended processes of our cgroups that are not collected.
func (f *fixture) zombies() int {
	f.t.Helper()
	pids, err := proc.PIDs(nil)
	if err != nil {
		f.t.Fatal(err)
	}

	n := 0
	for _, pid := range pids {
		if st, err := proc.Stat(pid); err != nil || !st.Dead() || st.PPID != os.Getpid() {
			continue
		}
		if group, err := proc.Cgroup(pid); err == nil && strings.Contains(group, f.opt.Instance) {
			n++
		}
	}

	return n
}

var _ supervise.Host = (*host.Host)(nil)

func BenchmarkRun(b *testing.B) {
	h, err := host.New(host.Options{Instance: "bench", StateDir: b.TempDir(), Log: discard()})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	k := gozzard.Key{Namespace: "bench", Name: "run"}
	for b.Loop() {
		if _, err := h.Run(b.Context(), supervise.Run{Key: k, Spec: &gozzard.Spec{}, Command: ":",
			Timeout: time.Minute}); err != nil {
			b.Fatal(err)
		}
	}
}

// Without cgroups an orphan is known by its age only. It is collected all the same, and no exit code is lost.
func TestP12OrphansWithoutCgroups(t *testing.T) {
	f := newHost(t, noCgroups)
	if err := f.BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}

	k, s := f.key("storm"), f.spec("x")
	f.run(k, s, true, "i=0; while [ $i -lt 50 ]; do (true &); i=$((i+1)); done")
	if res := f.run(k, s, false, "exit 7"); res.ExitCode != 7 {
		t.Errorf("%+v", res)
	}

	zombies := func() (n int) {
		pids, err := proc.PIDs(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			if st, err := proc.Stat(pid); err == nil && st.Dead() && st.PPID == os.Getpid() {
				n++
			}
		}
		return n
	}
	most := zombies()
	for end := time.Now().Add(time.Minute); zombies() > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	if n := zombies(); n > 0 || most == 0 {
		t.Errorf("%d zombies are left of %d", n, most)
	}
}
