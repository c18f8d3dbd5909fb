package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestTimeoutLeavesNothing(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("慢"), f.spec("x")
			// With cgroups a grandchild in a new session is found too. Without cgroups it must at least be in the tree.
			command := "sleep 300 & echo $! >p1; setsid sleep 301 & echo $! >p2; (sh -c 'sleep 302 & echo $! >p3; wait') & echo begun; sleep 303"

			if name == "cgroups" {
				f.needsCgroups()
				command = "(setsid sh -c 'sleep 304 & echo $! >p4') & " + command
			}

			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: command, Timeout: time.Second,
				Keeps: true})
			if err != nil || !res.TimedOut || res.ExitCode != -1 || !strings.HasPrefix(res.Output, "begun") {
				t.Fatalf("%+v %v", res, err)
			}

			files, _ := filepath.Glob(filepath.Join(f.dir, "p?"))
			if len(files) < 3 {
				t.Fatalf("only %v were written", files)
			}

			for _, p := range files {
				if pid := readPID(t, p); alive(pid) {
					f.kills(pid)
					t.Errorf("%s: pid %d still runs", p, pid)
				}
			}
		})
	}
}

func TestTimeoutOfALaterCommandSparesTheProcess(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	found := f.daemon(k, s, f.program("svc")+" 300")
	res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Command: "sleep 300",
		Timeout: 50 * time.Millisecond, Keeps: true})
	if err != nil || !res.TimedOut {
		t.Fatalf("%+v %v", res, err)
	}
	if !f.Alive(found.Proc) {
		t.Error("the process was killed with the command")
	}
}

func TestLeftoversAreClearedUnlessKept(t *testing.T) {
	for name, change := range map[string]func(*host.Options){"cgroups": func(*host.Options) {}, "sessions": noCgroups} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t, change)
			k, s := f.key("a"), f.spec("x")
			f.run(k, s, false, "sleep 300 & echo $! >once")
			f.run(k, s, true, "sleep 300 & echo $! >kept")

			if pid := readPID(t, f.dir+"/once"); alive(pid) {
				f.kills(pid)
				t.Error("leftover of a command that keeps nothing still runs")
			}

			pid := readPID(t, f.dir+"/kept")
			f.kills(pid)

			if !alive(pid) {
				t.Error("a process that was to be kept has ended")
			}
		})
	}
}

func TestDaemonWithOurOutputNeitherDelaysNorDies(t *testing.T) {
	f := newHost(t)
	k, s := f.key("话多"), f.spec("talker")
	script := filepath.Join(f.dir, "talker")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do echo still here; echo . >>"+f.dir+
		"/beats; sleep 0.02; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	s.Identity.PIDPath = f.dir + "/daemon.pid"
	found := f.daemon(k, s, script) // returns although the daemon holds our output

	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	beats := func() int64 {
		fi, err := os.Stat(f.dir + "/beats")
		if err != nil {
			return 0
		}
		return fi.Size()
	}

	before := beats()
	f.eventually("the daemon writes on after Close", func() bool { return beats() > before+5 })

	again := f.open()
	same, err := look(again, k, s)
	if err != nil || same.Proc != found.Proc || !same.StartedAt.Equal(found.StartedAt) {
		t.Errorf("found again as %+v, was %+v (%v)", same, found, err)
	}
	if err := again.Signal(found.Proc, supervise.SignalKill); err != nil {
		t.Error(err)
	}
}

func TestEndOfContextLeavesTheCommandAlone(t *testing.T) {
	f := newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	k := f.key("a")
	done := make(chan error, 1)
	go func() {
		_, err := f.Run(ctx, supervise.Run{Key: k, Spec: f.spec("x"), Command: "echo >begun; sleep 0.3; echo >ended",
			Timeout: time.Minute})
		done <- err
	}()

	f.eventually("the command has begun", func() bool { _, err := os.Stat(f.dir + "/begun"); return err == nil })
	cancel()

	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	f.eventually("the command has ended", func() bool { _, err := os.Stat(f.dir + "/ended"); return err == nil })
}

func TestClearKillsTheGroupOnly(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	other := f.key("b")
	path := f.program("svc")
	mine := f.daemon(k, s, path+" 300")
	theirs := f.daemon(other, s, path+" 300")

	if err := clean(f.Host, k); err != nil {
		t.Fatal(err)
	}
	if f.Alive(mine.Proc) || !f.Alive(theirs.Proc) {
		t.Errorf("mine alive %v, the other %v", f.Alive(mine.Proc), f.Alive(theirs.Proc))
	}
	if err := clean(f.Host, k); err != nil {
		t.Errorf("clearing nothing: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	f := newHost(t)
	const n = 24
	errs := make(chan error, n)
	for i := range n {
		k := f.key(fmt.Sprint("p", i%3))
		if i%2 == 0 { // commands that keep a process share its log and run one after the other
			k = f.key(fmt.Sprint("k", i))
		}
		go func() {
			want := fmt.Sprint(i)
			res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: f.spec("x"),
				Command: "echo " + want + "; exit " + want, Timeout: time.Minute, Keeps: i%2 == 0})
			if err == nil && (res.ExitCode != i || res.Output != want) {
				err = fmt.Errorf("%d: %+v", i, res)
			}
			errs <- err
		}()
	}

	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
