package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

func (f *fixture) script(name, text string) string {
	f.t.Helper()
	p := filepath.Join(f.dir, name)
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	return p
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// front runs a start command that is expected to stay in the foreground, and finds its process.
func (f *fixture) front(k gozzard.Key, s *gozzard.Spec, command string) supervise.Found {
	f.t.Helper()
	res, err := f.Run(f.t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionStart, Command: command,
		Timeout: 20 * time.Second, Keeps: true,
		Front: 50 * time.Millisecond})
	if err != nil || !res.Front || res.TimedOut || res.ExitCode != 0 {
		f.t.Fatalf("%s: %+v %v", command, res, err)
	}

	found, err := look(f.Host, k, s)
	if err != nil || found.Proc.IsZero() {
		f.t.Fatalf("%s: %+v %v", command, found, err)
	}

	f.kills(found.Proc.PID)
	return found
}

func (f *fixture) exit(p supervise.Proc, end func()) supervise.Exit {
	f.t.Helper()
	exit := make(chan supervise.Exit, 2)
	stop, err := f.Watch(p, func(e supervise.Exit) { exit <- e })
	if err != nil {
		f.t.Fatal(err)
	}

	defer stop()
	end()

	select {
	case e := <-exit:
		return e
	case <-time.After(20 * time.Second):
		f.t.Fatal("exit was not noticed")
		return supervise.Exit{}
	}
}

func TestForegroundCommandIsTheProcess(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("前台"), f.spec("svc")
			s.Identity.PIDPath = f.dir + "/svc.pid"
			path := f.program("svc")
			found := f.front(k, s, "echo $$ >svc.pid; echo begun; exec "+path+" 300")
			e := f.exit(found.Proc, func() {
				if err := f.Signal(found.Proc, supervise.SignalTerm); err != nil {
					t.Error(err)
				}
			})
			if !e.Known || e.Code != -1 || e.Signal != "SIGTERM" || e.Core {
				t.Errorf("%+v", e)
			}

			f.Collect(t.Context(), found.Proc)

			if _, err := proc.Stat(found.Proc.PID); err == nil {
				t.Error("it is still in the process table")
			}
			if e := f.exit(found.Proc, func() {}); !e.Known || e.Signal != "SIGTERM" {
				t.Errorf("a later collect: %+v", e)
			}

			host.Tidy(f.Host) // collects what is collected already
			host.Tidy(f.Host)
		})
	}
}

func TestForegroundExitCodesAreNeverLost(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()

	if err := f.BecomeSubreaper(); err != nil {
		t.Skip(err)
	}

	path := f.script("svc", "while [ ! -e $1 ]; do sleep 0.01; done; exit $2")
	for i := range 10 {
		k, s := f.key(fmt.Sprint("p", i)), f.spec("svc")
		flag := fmt.Sprintf("%s/flag%d", f.dir, i)
		found := f.front(k, s, fmt.Sprintf("exec %s %s %d", path, flag, i))
		e := f.exit(found.Proc, func() {
			if err := os.WriteFile(flag, nil, 0o644); err != nil {
				t.Error(err)
			}
			host.Tidy(f.Host)
		})
		if !e.Known || e.Code != i {
			t.Errorf("%d: %+v", i, e)
		}
	}
}

func TestForegroundChildOfTheShell(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	found := f.front(k, s, f.program("svc")+" 300; echo after")
	if st, err := proc.Stat(found.Proc.PID); err != nil || st.PPID == os.Getpid() {
		t.Fatalf("%+v %v", st, err)
	}

	e := f.exit(found.Proc, func() {
		if err := f.Signal(found.Proc, supervise.SignalKill); err != nil {
			t.Error(err)
		}
	})
	if e.Known && (e.Signal != "SIGKILL" || e.Code != -1) { // only new kernels report it
		t.Errorf("%+v", e)
	}

	t.Logf("%+v", e)

	f.eventually("the shell went on", func() bool {
		return strings.Contains(string(f.ReadLog(gozzard.LogQuery{Key: k, Offset: -1}).Data), "after")
	})
}

func TestForegroundRunsOnWithoutTimeout(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	path := f.program("svc")
	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: "exec " + path + " 300",
		Timeout: 400 * time.Millisecond, Keeps: true, Front: 20 * time.Millisecond})
	if err != nil || !res.Front {
		t.Fatalf("%+v %v", res, err)
	}

	found, err := look(f.Host, k, s)
	if err != nil || found.Proc.IsZero() || !found.ByCgroup {
		t.Fatalf("%+v %v", found, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	time.Sleep(600 * time.Millisecond) // longer than the time-out
	again := f.open()
	same, err := look(again, k, s)
	if err != nil || same.Proc != found.Proc || !again.Alive(found.Proc) {
		t.Errorf("after the agent ended: %+v %v", same, err)
	}
}

func TestCommandThatIsNotTheProcessIsNotTakenForIt(t *testing.T) {
	f := newHost(t)
	// the shell of a command has the name sh too
	for _, s := range []*gozzard.Spec{f.spec("svc"), f.spec("sh"), f.spec("")} {
		res, err := f.Run(t.Context(), supervise.Run{Key: f.key("a"), Spec: s, Command: "sleep 300; :",
			Timeout: 500 * time.Millisecond, Keeps: true, Front: 10 * time.Millisecond})
		if err != nil || res.Front || !res.TimedOut {
			t.Errorf("%q: %+v %v", s.Identity.ProcName, res, err)
		}
	}
}

const abort = syscall.SIGABRT

func TestExitReportsACore(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	found := f.front(k, s, "ulimit -c unlimited; exec "+f.program("svc")+" 300")
	e := f.exit(found.Proc, func() {
		p, err := os.FindProcess(found.Proc.PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(abort); err != nil {
			t.Error(err)
		}
	})
	if !e.Known || e.Signal != "SIGABRT" {
		t.Errorf("%+v", e)
	}
	if cores, _ := filepath.Glob(f.dir + "/core*"); (len(cores) > 0) && !e.Core {
		t.Errorf("there is a core: %+v", e)
	}

	t.Logf("core: %v", e.Core)
}

// Cycles of start and end leave nothing behind: no descriptor, no thread of the start, no record.
func TestForegroundCyclesLeaveNothing(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("轮"), f.spec("svc")
	command := "exec " + f.program("svc") + " 300"

	open := func() int {
		n, err := proc.FDs(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	var before int
	for i := range 30 {
		if i == 5 {
			host.Tidy(f.Host)
			before = open()
		}
		found := f.front(k, s, command)
		e := f.exit(found.Proc, func() {
			if err := f.Signal(found.Proc, supervise.SignalKill); err != nil {
				t.Error(err)
			}
		})
		if !e.Known || e.Signal != "SIGKILL" {
			t.Errorf("%d: %+v", i, e)
		}
		if err := clean(f.Host, k); err != nil {
			t.Error(err)
		}
	}

	f.eventually("descriptors are given back", func() bool {
		host.Tidy(f.Host)
		return open() <= before+2
	})

	if st, err := proc.Stat(os.Getpid()); err != nil || st.Threads > 64 {
		t.Errorf("%d threads (%v)", st.Threads, err)
	}
	if st, _ := filepath.Glob(f.state + "/output/*"); len(st) > 0 {
		t.Errorf("output is left: %v", st)
	}
}
