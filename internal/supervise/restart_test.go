package supervise_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func onFailure(change func(*gozzard.Spec)) []byte {
	return definition(func(s *gozzard.Spec) {
		s.Policy.Restart = gozzard.RestartOnFailure
		if change != nil {
			change(s)
		}
	})
}

// TestRestartOnFailure checks that an exit with 0 ends a process for good, also for the next agent, and that every other end
// brings it back.
func TestRestartOnFailure(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, onFailure(nil), gozzard.CodeOK, true)
		for _, e := range []supervise.Exit{{Known: true, Code: 1}, {Known: true, Signal: "SIGKILL"}, {}} {
			r.after(2 * time.Minute)
			r.end(e)
			r.after(time.Second)
			r.alive(1)
		}

		// It exits with 0, and stays down.
		r.after(2 * time.Minute)
		r.end(supervise.Exit{Known: true})
		r.after(time.Hour)
		r.alive(0)
		r.down()
		r.up()
		r.after(time.Hour)
		r.alive(0)

		// A person starts it again, and supervision goes on.
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		r.after(2 * time.Minute)
		r.end(supervise.Exit{Known: true, Code: 1})
		r.after(time.Second)
		r.alive(1)
	})
}

// TestRestartOnFailureOfAQuickRun checks a command that does its work within the check of its start.
func TestRestartOnFailureOfAQuickRun(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := onFailure(func(s *gozzard.Spec) { s.Control.Start = "exit-after 10ms 0" })
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.after(time.Hour)
		if n := r.machine.Starts(game); n != 1 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestRestartAfterAnActionOnALimit checks that a process that was stopped for its limit comes back, although it ended well.
func TestRestartAfterAnActionOnALimit(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, onFailure(func(s *gozzard.Spec) {
			s.Resource = gozzard.Resource{MemB: 100 << 20, Act: gozzard.ActKill}
		}), gozzard.CodeOK, true)
		first := r.status().PID
		r.machine.SetUsage(game, supervise.Usage{MemKB: 101 << 10, Procs: 1})
		r.after(25 * time.Second)
		if st := r.status(); st.PID == first || st.State != gozzard.StateRunning ||
			!strings.Contains(st.Message, "mem 101 MiB is over its limit of 100 MiB in 2 samples in a row; killed") {
			t.Errorf("%+v", st)
		}
	})
}

// TestLimitInCores checks the limit of processor time in cores.
func TestLimitInCores(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
			s.Resource = gozzard.Resource{CPUs: 1.5, Act: gozzard.ActAlert}
		}), gozzard.CodeOK, true)
		r.machine.SetUsage(game, supervise.Usage{CPU: 1, Cores: 1.4, Procs: 1})
		r.after(time.Minute)
		if m := r.status().Message; m != "" {
			t.Error(m)
		}
		r.machine.SetUsage(game, supervise.Usage{CPU: 1, Cores: 1.6, Procs: 1})
		r.after(time.Minute)
		if m := r.status().Message; m != "cpu 1.6 cores is over its limit of 1.5 cores in 2 samples in a row" {
			t.Error(m)
		}
	})
}

// TestRestartMax checks that the agent gives up, says so, and begins a new count after a start by a person.
func TestRestartMax(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) {
			s.Control.Start, s.Policy.StartCheckSecs, s.Policy.RestartMax = "exit-after 2s 1", 1, 3
		})
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.after(time.Hour)
		if n := r.machine.Starts(game); n != 4 { // the first start and three restarts
			t.Errorf("%d starts", n)
		}
		if m := r.status().Message; !strings.HasPrefix(m, "gave up after 3 restarts in a row (restart.max) and waits for a start by hand") {
			t.Error(m)
		}
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		r.after(time.Hour)
		if n := r.machine.Starts(game); n != 8 {
			t.Errorf("%d starts", n)
		}
	})
}

func dies(after string) []byte {
	return definition(func(s *gozzard.Spec) {
		s.Control.Start, s.Policy.StartCheckSecs, s.Policy.RestartMax = "exit-after "+after+" 1", 1, 3
	})
}

// TestRestartMaxOutlivesTheAgent checks that another agent of the same boot goes on counting, and starts nothing that the
// one before has given up. A boot and a person begin a new count.
func TestRestartMaxOutlivesTheAgent(t *testing.T) {
	bubble(t, func(r *rig) {
		starts := 0
		check := func(when string, n int) {
			t.Helper()
			st, got := r.status(), r.machine.Starts(game)-starts
			if got != n || st.Condition != gozzard.ConditionFailed || !strings.HasPrefix(st.Message, "gave up after 3 restarts") {
				t.Fatalf("%s: %d starts, want %d, status %+v", when, got, n, st)
			}
			starts += got
		}

		// The count goes on, whenever another agent comes.
		r.want(gozzard.ActionStart, dies("2s"), gozzard.CodeOK, true)
		for r.machine.Starts(game) < 3 {
			r.after(time.Second)
		}
		r.down()
		r.up()
		r.after(time.Hour)
		check("an agent that comes while it counts", 4)
		for range 3 {
			r.down()
			r.up()
			r.after(time.Hour)
		}
		check("an agent that comes when it was given up", 0)

		// A person begins a new count, and so does a boot.
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		r.after(time.Hour)
		check("a start by a person", 4)
		r.down()
		r.machine.Reboot()
		r.boot = "boot-2"
		r.up()
		r.after(time.Hour)
		check("a boot", 4)
	})
}

// TestPauseOutlivesTheAgent checks that a crash loop goes on with another agent: the pause before the next start is not cut
// short, and the next pause is not shorter. An agent that comes after the pause starts the process at once.
func TestPauseOutlivesTheAgent(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
			s.Control.Start, s.Policy.StartCheckSecs = "exit-after 2s 1", 1
		}), gozzard.CodeOK, true)
		inPause := func() int {
			t.Helper()
			for r.status().Condition != gozzard.ConditionCrashLoop {
				r.after(time.Second)
			}
			return r.machine.Starts(game)
		}

		// Another agent comes at the beginning of a long pause.
		r.after(3 * time.Minute)
		n := inPause()
		for range 5 {
			r.down()
			r.up()
			r.after(time.Second)
			st := r.status()
			if got := r.machine.Starts(game); got != n || st.Condition != gozzard.ConditionCrashLoop ||
				!strings.HasPrefix(st.Message, "crash loop: ") {
				t.Fatalf("another agent: %d starts, want %d, status %+v", got, n, st)
			}
		}
		r.after(10 * time.Minute)
		if got := r.machine.Starts(game) - n; got < 1 || got > 6 {
			t.Errorf("%d starts in ten minutes", got)
		}

		// Another agent comes after the pause is over.
		n = inPause()
		r.down()
		r.after(time.Hour)
		r.up()
		r.after(time.Second)
		if got := r.machine.Starts(game); got != n+1 {
			t.Errorf("%d starts, want %d", got, n+1)
		}
	})
}

// TestCountEndsWithASteadyRun checks that a run of more than a minute ends the count, also if the agent starts again during
// the run, and if it does not see the end.
func TestCountEndsWithASteadyRun(t *testing.T) {
	for name, steady := range map[string]func(r *rig){
		"seen": func(r *rig) { r.after(90 * time.Second); r.end(supervise.Exit{Known: true, Code: 1}) },
		"agent starts again": func(r *rig) {
			r.after(40 * time.Second)
			r.down()
			r.up()
			r.after(40 * time.Second)
			r.end(supervise.Exit{Known: true, Code: 1})
		},
		"end not seen": func(r *rig) {
			r.after(90 * time.Second)
			r.down()
			r.end(supervise.Exit{Known: true, Code: 1})
			r.up()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.want(gozzard.ActionStart, dies("1000h"), gozzard.CodeOK, true)
				for range 3 { // as often as it may
					r.after(10 * time.Second)
					r.end(supervise.Exit{Known: true, Code: 1})
				}
				for r.status().State != gozzard.StateRunning {
					r.after(time.Second)
				}
				steady(r)
				for range 2 { // it may end again
					r.after(20 * time.Second)
					r.alive(1)
					r.end(supervise.Exit{Known: true, Code: 1})
				}
				r.after(20 * time.Second)
				r.alive(1)
			})
		})
	}
}

// TestStopSignal checks that a stop without a command sends the signal of the definition.
func TestStopSignal(t *testing.T) {
	for word, want := range map[string]string{"": "SIGTERM", "INT": "SIGINT", "QUIT": "SIGQUIT", "HUP": "SIGHUP",
		"USR1": "SIGUSR1", "USR2": "SIGUSR2", "WINCH": "SIGWINCH", "KILL": "SIGKILL"} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
				s.Control.Stop, s.Policy.StopSignal = "", word
			}), gozzard.CodeOK, true)
			r.events()
			r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
			if e := r.kinds(gozzard.EventExited); e[0].Signal != want {
				t.Errorf("%s: %+v", word, e)
			}
		})
	}
}

// TestProbe checks a health check that is no command.
func TestProbe(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
			s.Control.HealthTCP, s.Control.Version = "127.0.0.1:1", ""
			s.Policy.HealthInterval, s.Policy.HealthThreshold, s.Policy.HealthRestart = 5, 2, true
		}), gozzard.CodeOK, true)
		r.events()
		r.after(time.Minute)
		if h := r.health(); h != "ok" {
			t.Error(h)
		}
		first := r.status().PID
		r.machine.Sick(errors.New("health: connection refused"))
		r.after(20 * time.Second)
		if r.status().PID == first {
			t.Errorf("%+v", r.status())
		}
		if e := r.events(); len(e) == 0 || e[0].Kind != gozzard.EventHealth ||
			e[0].Message != "unhealthy: health: connection refused" {
			t.Errorf("%+v", e)
		}
	})
}
