package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	programMode = "HOST_TEST_PROGRAM" // makes the test binary one of the programs that tests start
	markFile    = "marked"            // a program makes it when it has started
)

func TestMain(m *testing.M) {
	switch os.Getenv(programMode) {
	case "":
		os.Exit(m.Run())
	case "busy":
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		}
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), programMode+"=busy")
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case "seven":
		time.Sleep(2 * time.Second)
		os.Exit(7)
	case "mark":
		if err := os.WriteFile(markFile, nil, 0o644); err != nil {
			os.Exit(1)
		}
		time.Sleep(time.Minute)
	case "chatty":
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			fmt.Println(strings.Repeat("more ", 200))
		}
	case "agent":
		actAsAgent()
	case "await":
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(markFile); err == nil {
				os.Exit(0)
			}
		}
		os.Exit(1)
	default:
		time.Sleep(time.Minute)
	}
}

// fixture is a host with a separate folder.
type fixture struct {
	*host.Host
	t   *testing.T
	dir string
	opt host.Options
}

func newHost(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: tempDir(t)}
	f.opt = host.Options{Instance: "test-" + gozzard.NewOpID().String()[:8], StateDir: tempDir(t),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	f.Host = f.open()
	return f
}

// tempDir is like t.TempDir, but removes its files one by one: Wine, where these tests run, does not have the system
// call that os.RemoveAll uses. The file of a program may stay in use for a moment after the program has ended.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		until(t, dir+" is removed", func() bool {
			var paths []string
			err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				paths = append(paths, path)
				return err
			})
			for _, path := range slices.Backward(paths) {
				err = errors.Join(err, os.Remove(path))
			}
			return err == nil
		})
	})

	return dir
}

func (f *fixture) open() *host.Host {
	f.t.Helper()
	h, err := host.New(f.opt)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			f.t.Errorf("close: %v", err)
		}
	})
	return h
}

// key is cleared when the test ends.
func (f *fixture) key(name string) gozzard.Key {
	k := gozzard.Key{Namespace: "测试", Name: name}
	f.t.Cleanup(func() {
		h := f.open() // the test may have closed its own
		if err := clean(h, k); err != nil {
			f.t.Errorf("clear: %v", err)
		}
	})
	return k
}

func (f *fixture) spec(procName string) *gozzard.Spec {
	return &gozzard.Spec{Identity: gozzard.Identity{ProcName: procName, SetupPath: f.dir}}
}

// program makes a copy of this binary under another name.
func (f *fixture) program(name string) {
	f.t.Helper()
	src, err := os.Open(os.Args[0])
	if err != nil {
		f.t.Fatal(err)
	}

	defer src.Close()
	dst, err := os.Create(filepath.Join(f.dir, name+".exe"))
	if err != nil {
		f.t.Fatal(err)
	}

	_, err = io.Copy(dst, src)
	if err := errors.Join(err, dst.Close()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) run(r supervise.Run) supervise.Result {
	f.t.Helper()
	if r.Timeout == 0 {
		r.Timeout = time.Minute
	}
	r.Op = gozzard.NewOpID()
	res, err := f.Run(f.t.Context(), r)
	if err != nil {
		f.t.Fatalf("%s: %v", r.Command, err)
	}
	return res
}

// start runs a program that keeps running when its command has ended, and finds it.
func (f *fixture) start(k gozzard.Key, s *gozzard.Spec, mode string) supervise.Found {
	f.t.Helper()
	res := f.run(supervise.Run{Key: k, Spec: s, Keeps: true, Command: background(mode, s.Identity.ProcName)})
	if res.ExitCode != 0 || res.TimedOut {
		f.t.Fatalf("%+v", res)
	}
	return f.find(f.Host, k, s)
}

func background(mode, name string) string {
	return "set " + programMode + "=" + mode + "&& start /b " + name + ".exe"
}

func (f *fixture) find(h *host.Host, k gozzard.Key, s *gozzard.Spec) supervise.Found {
	f.t.Helper()
	var found supervise.Found
	until(f.t, "the process is found", func() bool {
		var err error
		if found, err = look(h, k, s); err != nil {
			f.t.Fatal(err)
		}
		return !found.Proc.IsZero()
	})
	return found
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func TestRun(t *testing.T) {
	f := newHost(t)
	k := f.key("run")
	for _, keeps := range []bool{true, false} {
		res := f.run(supervise.Run{Key: k, Spec: f.spec(""), Keeps: keeps,
			Command: "echo %GOZZARD_NAME% in %CD%& exit 3"})
		if res.ExitCode != 3 || res.TimedOut || !strings.HasPrefix(res.Output, "run in ") ||
			!strings.Contains(res.Output, filepath.Base(f.dir)) {
			t.Errorf("keeps %v: %+v", keeps, res)
		}
	}

	script := filepath.Join(f.dir, "hello.bat")
	if err := os.WriteFile(script, []byte("@echo off\r\necho hello %1\r\nexit /b 4\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := f.run(supervise.Run{Key: k, Spec: f.spec(""), Command: "hello.bat you"}); res.ExitCode != 4 ||
		strings.TrimSpace(res.Output) != "hello you" {
		t.Errorf("%+v", res)
	}

	bad := f.spec("")
	bad.Identity.User = "somebody-else"
	if _, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: bad, Command: "echo"}); err == nil ||
		!strings.Contains(err.Error(), "cannot run as somebody-else") {
		t.Errorf("%v", err)
	}

	bad = f.spec("")
	bad.Identity.SetupPath = filepath.Join(f.dir, "missing")
	if _, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: bad, Command: "echo"}); err == nil ||
		!strings.Contains(err.Error(), "no such directory") {
		t.Errorf("%v", err)
	}
}

// Processes that a command leaves running end with it, if the command does not start the process of the definition.
// This holds for a command that ended and for one that took too long.
func TestLeftovers(t *testing.T) {
	for name, tooLong := range map[string]bool{"ended": false, "timed out": true} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t)
			f.program("lefty")
			r := supervise.Run{Key: f.key("left"), Spec: f.spec("lefty"),
				Command: background("mark", "lefty") + "&& set " + programMode + "=await&& lefty.exe"}

			if tooLong {
				r.Timeout = 5 * time.Second
				r.Command += "&& set " + programMode + "=sleep&& lefty.exe"
			}

			if res := f.run(r); res.TimedOut != tooLong || !tooLong && res.ExitCode != 0 {
				t.Errorf("%+v", res)
			}
			if _, err := os.Stat(filepath.Join(f.dir, markFile)); err != nil {
				t.Errorf("it was never there: %v", err)
			}
			if pids := running(t, "lefty.exe"); len(pids) > 0 {
				t.Errorf("still running: %v", pids)
			}
		})
	}
}

// running lists processes by the name of their program.
func running(t *testing.T, image string) (pids []int) {
	t.Helper()
	for pid, name := range host.Images(t) {
		if strings.EqualFold(name, image) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A restarted agent finds its processes by the name of the job, without a pid file, and clears them.
func TestFindByJob(t *testing.T) {
	f := newHost(t)
	f.program("finder")
	k, s := f.key("find"), f.spec("finder")
	none, err := look(f.Host, k, s)
	if err != nil || !none.Proc.IsZero() || !none.Empty || none.Reason == "" {
		t.Fatalf("%+v %v", none, err)
	}

	first := f.start(k, s, "sleep")
	if !first.ByCgroup || time.Since(first.StartedAt).Abs() > time.Minute || !f.Alive(first.Proc) {
		t.Fatalf("%+v", first)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	again := f.open()
	if second := f.find(again, k, s); second.Proc != first.Proc || second.ByCgroup != first.ByCgroup {
		t.Fatalf("%+v, was %+v", second, first)
	}

	other := s
	other.Identity.ProcName = "other"
	if x, err := look(again, k, other); err != nil || !x.Proc.IsZero() || x.Empty ||
		!strings.Contains(x.Reason, "runs as finder, definition says other") {
		t.Errorf("%+v %v", x, err)
	}

	if err := clean(again, k); err != nil {
		t.Fatal(err)
	}
	if again.Alive(first.Proc) {
		t.Error("alive after clear")
	}

	s.Identity.ProcName = "finder"
	if x, err := look(again, k, s); err != nil || !x.Empty {
		t.Errorf("%+v %v", x, err)
	}

	f.Host = again
	if third := f.start(k, s, "sleep"); !third.ByCgroup || third.Proc == first.Proc {
		t.Errorf("%+v", third)
	}
}

// A reload that takes too long is killed. The process keeps running.
func TestTimeoutSparesProcess(t *testing.T) {
	f := newHost(t)
	f.program("spared")
	f.program("stuck")
	k, s := f.key("spare"), f.spec("spared")
	found := f.start(k, s, "sleep")
	res := f.run(supervise.Run{Key: k, Spec: s, Keeps: true, Timeout: 2 * time.Second,
		Command: "set " + programMode + "=sleep&& stuck.exe"})
	if !res.TimedOut || res.ExitCode != -1 {
		t.Errorf("%+v", res)
	}
	if pids := running(t, "stuck.exe"); len(pids) > 0 {
		t.Errorf("still running: %v", pids)
	}
	if !f.Alive(found.Proc) {
		t.Error("the process was ended with the command")
	}
}

// A process that the agent did not start is found by its pid file only, and is never cleared.
func TestFindByPIDFile(t *testing.T) {
	f := newHost(t)
	f.program("stranger")
	cmd := exec.Command(filepath.Join(f.dir, "stranger.exe"))
	cmd.Env = append(os.Environ(), programMode+"=sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	k, s := f.key("pid"), f.spec("Stranger.exe")
	s.Identity.PIDPath = filepath.Join(f.dir, "stranger.pid")
	write := func(text string) {
		if err := os.WriteFile(s.Identity.PIDPath, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	write(strconv.Itoa(cmd.Process.Pid) + "\r\n")
	found := f.find(f.Host, k, s)
	if found.ByCgroup || found.Proc.PID != cmd.Process.Pid {
		t.Errorf("%+v", found)
	}
	if err := clean(f.Host, k); err != nil || !f.Alive(found.Proc) {
		t.Errorf("clear: %v, alive %v", err, f.Alive(found.Proc))
	}

	for text, reason := range map[string]string{
		strconv.Itoa(os.Getpid()): "does not hold a process id", "0": "does not hold", "-4": "does not hold",
		strings.Repeat("1", 33):           "not a small regular file",
		strconv.Itoa(cmd.Process.Pid + 1): "which does not run",
	} {
		write(text)
		if x, err := look(f.Host, k, s); err != nil || !x.Proc.IsZero() || !strings.Contains(x.Reason, reason) {
			t.Errorf("%q: %+v %v", text, x, err)
		}
	}

	write(strconv.Itoa(cmd.Process.Pid))
	s.Identity.ProcName = "sqlservr"
	if x, err := look(f.Host, k, s); err != nil || !x.Proc.IsZero() ||
		!strings.Contains(x.Reason, "runs as stranger, definition says sqlservr") || x.PIDFileAt.IsZero() {
		t.Errorf("%+v %v", x, err)
	}
}

// Every watch reports the exit code at once, also when there are more watches than one system call can wait for.
func TestWatch(t *testing.T) {
	f := newHost(t)
	f.program("watched")
	k, s := f.key("watch"), f.spec("watched")
	found := f.start(k, s, "seven")
	const many = 200
	exits := make(chan supervise.Exit, many)
	for range many {
		if _, err := f.Watch(found.Proc, func(e supervise.Exit) { exits <- e }); err != nil {
			t.Fatal(err)
		}
	}

	var unwanted atomic.Int32
	stop, err := f.Watch(found.Proc, func(supervise.Exit) { unwanted.Add(1) })
	if err != nil {
		t.Fatal(err)
	}

	stop()

	for range many {
		select {
		case e := <-exits:
			if !e.Known || e.Code != 7 {
				t.Fatalf("%+v", e)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("an exit was not reported")
		}
	}

	if f.Alive(found.Proc) || unwanted.Load() != 0 {
		t.Errorf("alive %v, %d calls for watches that had ended", f.Alive(found.Proc), unwanted.Load())
	}

	gone := make(chan supervise.Exit, 1)
	if _, err := f.Watch(found.Proc, func(e supervise.Exit) { gone <- e }); err != nil {
		t.Fatal(err)
	}

	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Fatal("the exit of a process that had ended before is not reported")
	}
}

func TestSignal(t *testing.T) {
	f := newHost(t)
	f.program("victim")
	k, s := f.key("signal"), f.spec("victim")
	found := f.start(k, s, "sleep")
	later := found.Proc
	later.Start++

	if err := f.Signal(later, supervise.SignalKill); !errors.Is(err, os.ErrProcessDone) || !f.Alive(found.Proc) {
		t.Errorf("another process of that pid: %v", err)
	}
	if err := f.Signal(found.Proc, supervise.SignalTerm); err == nil || !f.Alive(found.Proc) {
		t.Errorf("term: %v", err)
	}
	if err := f.Signal(found.Proc, supervise.SignalKill); err != nil {
		t.Fatal(err)
	}

	until(t, "the process is gone", func() bool { return !f.Alive(found.Proc) })

	if err := f.Signal(found.Proc, supervise.SignalKill); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
}

func TestSample(t *testing.T) {
	f := newHost(t)
	f.program("tree")
	k, s := f.key("sample"), f.spec("tree")
	found := f.start(k, s, "parent")
	until(t, "the whole tree is measured", func() bool {
		u := f.Sample([]supervise.Proc{{BootID: found.Proc.BootID, PID: found.Proc.PID, Start: 1}, found.Proc})
		if u[0] != (supervise.Usage{}) {
			t.Fatalf("another process of that pid: %+v", u[0])
		}
		t.Logf("%+v", u[1])
		return u[1].Procs >= 2 && u[1].CPU > 1 && u[1].MemKB > 100 && u[1].Mem > 0 && u[1].FD > 0
	})

	d, err := f.Inspect(found.Proc)
	if err != nil || d.PID != found.Proc.PID || !strings.Contains(d.Cmdline, "tree") || d.Threads < 1 ||
		d.MemKB <= 0 || d.StartedAt != found.StartedAt.Unix() {
		t.Errorf("%+v %v", d, err)
	}

	if facts := f.Facts(); facts.MemBytes <= 0 || facts.CPUs <= 0 || facts.OS != "windows" || len(facts.Degraded) == 0 {
		t.Errorf("%+v", facts)
	}
}

// A start command that stays in the foreground is handed over, and keeps running when the agent ends.
func TestFront(t *testing.T) {
	f := newHost(t)
	f.program("fronted")
	k, s := f.key("front"), f.spec("fronted")
	hurry := make(chan struct{})
	close(hurry)
	res := f.run(supervise.Run{Key: k, Spec: s, Keeps: true, Front: time.Minute, Hurry: hurry,
		Command: "echo up&& set " + programMode + "=sleep&& fronted.exe"})
	if !res.Front || strings.TrimSpace(res.Output) != "up" {
		t.Fatalf("%+v", res)
	}

	found := f.find(f.Host, k, s)

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	again := f.open()
	if x := f.find(again, k, s); x.Proc != found.Proc || !x.ByCgroup {
		t.Errorf("%+v, was %+v", x, found)
	}
}

// A command keeps running when its caller stops waiting.
func TestAbandoned(t *testing.T) {
	f := newHost(t)
	f.program("left")
	k, s := f.key("abandon"), f.spec("left")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Run(ctx, supervise.Run{Key: k, Spec: s, Keeps: true, Timeout: time.Minute,
			Command: "set " + programMode + "=sleep&& left.exe"})
		ended <- err
	}()

	found := f.find(f.Host, k, s)
	cancel()

	if err := <-ended; !errors.Is(err, context.Canceled) || !f.Alive(found.Proc) {
		t.Errorf("%v, alive %v", err, f.Alive(found.Proc))
	}
}

// The output of a process is limited in size, and removed after the process has ended.
func TestOutputIsBounded(t *testing.T) {
	f := newHost(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	f.opt.LogBytes = 64 << 10
	f.Host = f.open()
	f.program("chatty")
	k, s := f.key("chatty"), f.spec("chatty")
	f.start(k, s, "chatty")

	printed := func() int64 {
		files, err := filepath.Glob(filepath.Join(f.opt.StateDir, "output", "run-*"))
		if err != nil || len(files) != 1 {
			return -1
		}
		fi, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}

	until(t, "it has printed too much", func() bool { return printed() > f.opt.LogBytes })

	if err := f.SweepOutput(); err != nil {
		t.Fatal(err)
	}
	if n := printed(); n < 0 || n > f.opt.LogBytes {
		t.Errorf("%d bytes are left", n)
	}

	until(t, "it prints on", func() bool { return printed() > 0 })

	if err := clean(f.Host, k); err != nil {
		t.Fatal(err)
	}

	until(t, "its output is gone", func() bool { return f.SweepOutput() == nil && printed() == -1 })
}
