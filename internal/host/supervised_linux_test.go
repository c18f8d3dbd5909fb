package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// supervised is this machine under a supervisor.
type supervised struct {
	*fixture
	s *supervise.Supervisor

	mu      sync.Mutex
	running int // start commands that the host still waits for
	front   int // start commands that were handed over as the process
}

// Run counts the start commands that the host waits for. It makes the hand-over by time come too late for any test.
func (v *supervised) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if r.Action != gozzard.ActionStart {
		return v.fixture.Run(ctx, r)
	}
	r.Front = time.Hour
	v.count(1, false)
	res, err := v.fixture.Run(ctx, r)
	v.count(-1, res.Front)
	return res, err
}

func (v *supervised) count(n int, front bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running += n
	if front {
		v.front++
	}
}

func newSupervised(t *testing.T) *supervised {
	t.Helper()
	v := &supervised{fixture: newHost(t)}
	v.needsCgroups()

	v.s = supervise.New(supervise.Options{
		Host: v, Changed: func(gozzard.Status) {}, Removed: func(gozzard.Key) {}, Event: func(gozzard.Event) {},
		Log: testLog(t),
	})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.s.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})

	return v
}

func (v *supervised) apply(a gozzard.Action, k gozzard.Key, s *gozzard.Spec) <-chan gozzard.Outcome {
	done := make(chan gozzard.Outcome, 1)
	v.s.Apply(supervise.Op{
		ID: gozzard.NewOpID(), Action: a, Key: k, Spec: gozzard.EncodeSpec(s), Begin: func() error { return nil },
		Done: func(out gozzard.Outcome, _ *supervise.Record, _ bool) { done <- out },
	})
	return done
}

func (v *supervised) definition(command string) *gozzard.Spec {
	s := v.spec("svc")
	s.Control.Start = command
	s.Policy = gozzard.DefaultPolicy()
	s.Policy.StartCheckSecs, s.Policy.OpTimeout = 0, 3600
	return s
}

func (v *supervised) pid(k gozzard.Key) int {
	st, _ := v.s.Status(k)
	return int(st.PID)
}

// There are more processes than pull-ups may start at a time, and none of their start commands ends. All of them can
// start only because a command is finished as soon as its shell has become the process.
func TestStormOfForegroundProcesses(t *testing.T) {
	for name, command := range map[string]string{"exec": "exec %s 300", "in place": "%s 300"} {
		t.Run(name, func(t *testing.T) {
			v := newSupervised(t)
			s := v.definition(fmt.Sprintf(command, v.program("svc")))
			const n = 100
			keys := make([]gozzard.Key, n)
			for i := range keys {
				keys[i] = v.key(fmt.Sprint("p", i))
				v.apply(gozzard.ActionHost, keys[i], s)
			}

			up := func(but map[int]bool) func() bool {
				return func() bool {
					for _, k := range keys {
						if pid := v.pid(k); pid <= 0 || but[pid] {
							return false
						}
					}
					return true
				}
			}

			v.eventually("all are up", up(nil))
			old := map[int]bool{}
			for _, k := range keys {
				old[v.pid(k)] = true
			}

			for pid := range old {
				if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
					t.Errorf("cannot kill %d", pid)
				}
			}

			v.eventually("all are up again", up(old))
			v.mu.Lock()
			defer v.mu.Unlock()

			if v.running != n || v.front != 0 {
				t.Errorf("%d start commands run, %d were handed over; want all to run", v.running, v.front)
			}
		})
	}
}

func TestStopDoesNotWaitForAPullUpInFront(t *testing.T) {
	v := newSupervised(t)
	for name, command := range map[string]string{"exec": "exec %s 300", "child": "%s 300; true"} {
		k := v.key(name)
		s := v.definition(fmt.Sprintf(command, v.program("svc")))
		v.apply(gozzard.ActionHost, k, s)
		v.eventually("it is up", func() bool { return v.pid(k) > 0 })
		select {
		case out := <-v.apply(gozzard.ActionStop, k, s):
			if out.Code != gozzard.CodeOK || out.Forced {
				t.Errorf("%s: %+v", name, out)
			}
		case <-time.After(20 * time.Second): // otherwise the supervisor would wait an hour for the command
			t.Fatalf("%s: the stop waits for the start command", name)
		}
		if st, _ := v.s.Status(k); st.State != gozzard.StateStopped || st.Hosted {
			t.Errorf("%s: %+v", name, st)
		}
	}

	v.mu.Lock()
	defer v.mu.Unlock()

	if v.front != 2 {
		t.Errorf("%d commands were handed over", v.front)
	}
}

func TestExitOfACommandThatBecameTheProcess(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	path, flag := f.script("svc", "while [ ! -e $1 ]; do sleep 0.01; done; exit 7"), f.dir+"/flag"
	ended := make(chan supervise.Result, 1)
	go func() {
		res, err := f.Run(t.Context(), supervise.Run{Key: k, Spec: s, Action: gozzard.ActionStart,
			Command: "exec " + path + " " + flag, Timeout: time.Minute,
			Keeps: true, Front: time.Hour})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()

	var found supervise.Found
	f.eventually("it is found while its command runs", func() bool {
		found, _ = look(f.Host, k, s)
		return !found.Proc.IsZero()
	})

	e := f.exit(found.Proc, func() {
		if err := os.WriteFile(flag, nil, 0o644); err != nil {
			t.Error(err)
		}
	})
	if !e.Known || e.Code != 7 {
		t.Errorf("exit %+v", e)
	}
	if res := <-ended; res.ExitCode != 7 || res.Front {
		t.Errorf("result %+v", res)
	}
	if found, err := look(f.Host, k, s); err != nil || !found.Proc.IsZero() || !found.Empty {
		t.Errorf("%+v %v", found, err)
	}
}

// A command that must end counts as a shell, whatever it executes: a restart may leave the old process running.
func TestShellThatMustEndIsNotTheProcess(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(k, s, true, "echo >begun; exec "+f.program("svc")+" 0.3")
	}()

	f.eventually("it runs", func() bool { return exists(f.dir + "/begun") })

	for {
		found, err := look(f.Host, k, s)
		if err != nil || !found.Proc.IsZero() {
			t.Errorf("%+v %v", found, err)
		}
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Millisecond):
			if found.Empty && err == nil {
				<-ended // it has ended in between
				return
			}
		}
	}
}

// Find reports that no process of a key is left, and when the pid file was written.
func TestFindReportsThatNothingIsLeft(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("svc")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	if found, err := look(f.Host, k, s); err != nil || !found.Empty || !found.PIDFileAt.IsZero() {
		t.Errorf("before: %+v %v", found, err)
	}

	began := time.Now().Add(-time.Second) // the clock of the file system may differ
	found := f.daemon(k, s, f.program("svc")+" 300")
	if found.Empty {
		t.Errorf("%+v", found)
	}

	s.Identity.ProcName = "other"
	if other, err := look(f.Host, k, s); err != nil || other.Empty || !other.Proc.IsZero() {
		t.Errorf("a process is alive that may become it: %+v %v", other, err)
	}
	if err := f.Signal(found.Proc, supervise.SignalKill); err != nil {
		t.Fatal(err)
	}

	f.eventually("nothing is left", func() bool {
		found, err := look(f.Host, k, s)
		return err == nil && found.Empty && found.PIDFileAt.After(began)
	})
}

// The daemon ended before the agent found it. Its pid file proves that it was started, so the start fails at once
// instead of waiting for the end of its check.
func TestStartFailsAtOnceWhenTheDaemonIsDead(t *testing.T) {
	v := newSupervised(t)
	k, s := v.key("a"), v.definition("sh -c : & echo $! >svc.pid; wait")
	s.Identity.PIDPath, s.Policy.StartCheckSecs = v.dir+"/svc.pid", 3600
	select {
	case out := <-v.apply(gozzard.ActionStart, k, s):
		if out.Code != gozzard.CodeCheckFailed {
			t.Errorf("%+v", out)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the start waits for the end of the check")
	}
}
