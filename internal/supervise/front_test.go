package supervise_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

func TestForegroundProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		began := time.Now()
		done := r.apply(gozzard.ActionStart, game, start("front"))
		r.after(100 * time.Millisecond)

		if st := r.status(); st.State != 0 && st.PID < 0 {
			t.Errorf("not shown while its command runs: %#v", st)
		}
		if out := <-done; out.Code != gozzard.CodeOK || time.Since(began) != 5*time.Second {
			t.Fatalf("%+v after %s, want the check's 5 s", out, time.Since(began))
		}

		r.alive(1)
		r.after(2 * time.Minute)
		r.end(supervise.Exit{Known: true, Code: 7})
		r.alive(1) // at once
		r.after(100 * time.Millisecond)

		if st := r.status(); st.State != gozzard.StateRunning || int(st.PID) != r.machine.Live(game)[0].PID {
			t.Errorf("a pull-up is not shown before its check is over: %#v", st)
		}

		r.after(10 * time.Second)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		r.after(time.Minute)

		if r.machine.InFlight(game) != 0 || r.machine.Peak(game) != 1 {
			t.Error("something is left")
		}
	})
}

func TestForegroundProcessThatDies(t *testing.T) {
	bubble(t, func(r *rig) {
		out := r.want(gozzard.ActionStart, start("front; print cannot bind; exit-after 2s 3"),
			gozzard.CodeCommandFailed, false)
		if out.Message != "cannot bind" {
			t.Errorf("message %q", out.Message)
		}
		out = r.want(gozzard.ActionStart, start("front; print bye; exit-after 2s 0"), gozzard.CodeCheckFailed, false)
		if !strings.Contains(out.Message, "the process exited with 0") ||
			!strings.HasSuffix(out.Message, "; last output: bye") {
			t.Errorf("message %q", out.Message)
		}
	})
}

func TestForegroundWindows(t *testing.T) {
	for _, c := range []struct {
		check, timeout int
		want           time.Duration
	}{
		{0, 60, time.Second},
		{5, 60, 5 * time.Second},
		{30, 10, 30 * time.Second}, // its command is not killed for being the process, and the check is waited out
		{5, 0, 5 * time.Second},
	} {
		bubble(t, func(r *rig) {
			began := time.Now()
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
				s.Control.Start, s.Policy.StartCheckSecs, s.Policy.OpTimeout = "front", c.check, c.timeout
			}), gozzard.CodeOK, true)
			if took := time.Since(began); took != c.want {
				t.Errorf("%+v: took %s", c, took)
			}
			r.after(time.Hour)
			r.alive(1)
		})
	}
}

// TestFrontWithoutCheck: without a start check the program that a command executes in its place is the process as soon as
// it runs. A launcher, and a program that may end, are waited for.
func TestFrontWithoutCheck(t *testing.T) {
	for _, c := range []struct {
		command string
		policy  gozzard.Policy
		want    time.Duration
	}{
		{"exec /opt/game/gamed -f", gozzard.Policy{OpTimeout: 60}, 50 * time.Millisecond},
		{"/opt/game/gamed", gozzard.Policy{OpTimeout: 60}, time.Second},
		{"executor", gozzard.Policy{OpTimeout: 60}, time.Second},
		{"exec /opt/game/gamed -f", gozzard.Policy{OpTimeout: 60, StartCheckSecs: 1}, time.Second},
		{"exec /opt/game/job", gozzard.Policy{OpTimeout: 60, Kind: gozzard.KindOneShot}, time.Second},
	} {
		if got := supervise.FrontAfter(c.policy, c.command); got != c.want {
			t.Errorf("%q with %+v: %v, want %v", c.command, c.policy, got, c.want)
		}
	}
}

func TestHangingCommandIsNoForegroundProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		out := r.want(gozzard.ActionStart, start("hang"), gozzard.CodeCommandFailed, false)
		if !strings.HasPrefix(out.Message, "start_cmd did not end within 60 s") {
			t.Errorf("message %q", out.Message)
		}
	})
}

// scripted starts the process with a script that looks like the process itself while it runs.
type scripted struct{ *sim.Host }

func (s scripted) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if r.Action != gozzard.ActionStart {
		return s.Host.Run(ctx, r)
	}
	script := s.Launch(r.Key)
	time.Sleep(300 * time.Millisecond)
	s.Launch(r.Key)
	return supervise.Result{}, s.Signal(script, supervise.SignalKill)
}

func TestStartScriptIsNotTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(h *sim.Host) supervise.Host { return scripted{h} })
		r.up()
		defer r.down()
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.alive(1)
		if es := r.kinds(gozzard.EventStarted); es[0].PID != r.machine.Live(game)[0].PID ||
			es[0].PID != int(r.status().PID) {
			t.Errorf("%+v", es)
		}
	})
}

// sluggish takes a while for every search, as a machine under load does.
type sluggish struct{ *sim.Host }

func (s sluggish) Find(q supervise.Query) (supervise.Found, error) {
	f, err := s.Host.Find(q)
	time.Sleep(300 * time.Millisecond)
	return f, err
}

func (s sluggish) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if r.Action != gozzard.ActionStart {
		return s.Host.Run(ctx, r)
	}
	time.Sleep(time.Second)
	s.Launch(r.Key)
	return supervise.Result{Front: true}, nil
}

// A process that was found late is checked until later. It does not fail when something wakes the check in between.
func TestProcessThatIsFoundLateIsNotReportedAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(h *sim.Host) supervise.Host { return sluggish{h} })
		r.up()
		defer r.down()
		done := r.apply(gozzard.ActionStart, game, definition(nil)) // its check takes five seconds
		var waiting []<-chan gozzard.Outcome
		for range 80 {
			time.Sleep(100 * time.Millisecond)
			waiting = append(waiting, r.apply(gozzard.ActionReload, game, nil))
		}
		if out := <-done; out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}
		for _, w := range waiting {
			<-w
		}
		r.alive(1)
	})
}

func TestEndOfACommandInFrontIsTheEndOfItsProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) { s.Policy.Kind, s.Control.Start = gozzard.KindOneShot, "front" })
		done := r.apply(gozzard.ActionStart, game, spec)
		r.after(time.Second)
		r.end(supervise.Exit{}) // not our child: only its command shows how it ended
		if out := <-done; out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}
		r.kinds(gozzard.EventStarted, gozzard.EventRan)
	})
}

func TestOperationEndsTheWaitForAPullUpInFront(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := start("front")
		r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
		r.after(time.Second)
		r.alive(1)
		began := time.Now()
		r.want(gozzard.ActionReload, nil, gozzard.CodeOK, true)

		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s", took)
		}

		r.alive(1) // nothing was killed for it
		r.end(supervise.Exit{Known: true, Code: 1})
		r.after(time.Second)
		began = time.Now()
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)

		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s", took)
		}

		r.after(time.Minute)
		r.alive(0)

		if n := r.machine.InFlight(game); n != 0 {
			t.Errorf("%d commands in flight", n)
		}
	})
}

// An operation ends the check of a pull-up early: the process may still be a launcher. It counts as the main process when
// the check would have been over.
func TestOperationEndsTheCheckAndNotTheDoubt(t *testing.T) {
	bubble(t, func(r *rig) {
		settled := func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.held[game].Settled
		}
		r.want(gozzard.ActionHost, start("front"), gozzard.CodeOK, true) // its check takes five seconds
		r.after(100 * time.Millisecond)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		r.alive(1)
		if settled() {
			t.Error("settled when the operation ended the check")
		}

		r.after(10 * time.Second)
		if !settled() {
			t.Error("not settled when the check would have been over")
		}
	})
}

// What is found in front of a command may be the launcher of a daemon that goes to the background. An operation that
// did not wait for it would bring up a second copy beside that daemon.
func TestOperationLeavesAPullUpInFrontAMoment(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("front"), gozzard.CodeOK, true)
		r.after(100 * time.Millisecond)
		r.alive(1)
		began := time.Now()
		r.want(gozzard.ActionReload, nil, gozzard.CodeOK, true)
		if took := time.Since(began); took < 400*time.Millisecond || took > 500*time.Millisecond {
			t.Errorf("waited %s, want until the process has been up for a moment", took)
		}
	})
}

func TestOperationDoesNotEndACommandOfAPullUpThatMustEnd(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("sleep 3s"), gozzard.CodeOK, true)
		r.after(100 * time.Millisecond)
		began := time.Now()
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		// After the command the daemon has a moment to write its pid file.
		if took := time.Since(began); took != 3400*time.Millisecond {
			t.Errorf("waited %s, want until the command has ended and a moment longer", took)
		}
		r.alive(0)
	})
}

func TestStartFailsAtOnceWhenNothingIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		pidFile string
		want    time.Duration
	}{
		"seen and gone":                    {"exit-after 1s 1", "/srv/pid", time.Second},
		"never seen, no pid file":          {"nothing", "", 0},
		"never seen, a pid file may come":  {"nothing", "/srv/pid", 5 * time.Second},
		"something is still to come of it": {"after 6s", "", 5 * time.Second},
	} {
		bubble(t, func(r *rig) {
			began := time.Now()
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
				s.Control.Start,
					s.Identity.PIDPath = c.command, c.pidFile
			}), gozzard.CodeCheckFailed, false)
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: failed after %s, want %s", name, took, c.want)
			}
		})
	}
}

// searched counts how often the supervisor looks for the process.
type searched struct {
	*sim.Host
	finds atomic.Int32
}

func (s *searched) Find(q supervise.Query) (supervise.Found, error) {
	s.finds.Add(1)
	return s.Host.Find(q)
}

func TestStopLooksNoMoreThanItMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &searched{}
		r := newRig(t, func(h *sim.Host) supervise.Host { host.Host = h; return host })
		r.up()
		defer r.down()
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Stop = "" }), gozzard.CodeOK, true)
		host.finds.Store(0)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		if n := host.finds.Load(); n > 2 { // before it, and when its watch has said that it is gone
			t.Errorf("looked for %d times", n)
		}
	})
}

// lateName is a machine on which a process has the name of its parent for a while, as between fork and exec.
type lateName struct {
	*sim.Host
	after time.Duration
}

func (h lateName) Find(q supervise.Query) (supervise.Found, error) {
	f, err := h.Host.Find(q)
	if !f.Proc.IsZero() && time.Since(f.StartedAt) < h.after {
		return supervise.Found{Reason: "another name"}, nil
	}
	return f, err
}

// TestStartWaitsForTheName checks that a start does not fail because its process gets its name late, and that it does fail
// when the name stays wrong.
func TestStartWaitsForTheName(t *testing.T) {
	quick := func(kind gozzard.Kind) []byte {
		return definition(func(s *gozzard.Spec) { s.Policy.StartCheckSecs, s.Policy.Kind = 0, kind })
	}
	try := func(after time.Duration, f func(r *rig)) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(h *sim.Host) supervise.Host { return lateName{h, after} })
			r.up()
			defer r.down()
			f(r)
		})
	}

	for _, kind := range []gozzard.Kind{gozzard.KindResident, gozzard.KindOneShot} {
		try(1200*time.Millisecond, func(r *rig) {
			r.want(gozzard.ActionStart, quick(kind), gozzard.CodeOK, true)
			r.alive(1)
			if st := r.status(); st.State != gozzard.StateRunning || int(st.PID) != r.machine.Live(game)[0].PID {
				t.Errorf("%v: %+v", kind, st)
			}
		})
	}

	try(time.Hour, func(r *rig) {
		out := r.want(gozzard.ActionStart, quick(gozzard.KindResident), gozzard.CodeCheckFailed, false)
		if !strings.Contains(out.Message, "another name; what it started was ended: pid ") {
			t.Error(out.Message)
		}
		r.alive(0)
	})
}
