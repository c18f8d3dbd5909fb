package supervise_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestHostedProcessIsPulledUpAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)

		for range 5 { // runs that lasted are no crash loop
			pid := r.status().PID
			r.after(2 * time.Minute)
			r.end(supervise.Exit{Known: true, Signal: "SIGKILL"})
			r.alive(1)
			if st := r.status(); st.PID == pid || st.State != gozzard.StateRunning || !st.Hosted {
				t.Fatalf("status right after the pull-up: %#v", st)
			}
			r.after(10 * time.Second)
			if st := r.status(); st.Message != "" || st.StartedAt < time.Now().Unix()-11 {
				t.Fatalf("status: %#v", st)
			}
		}

		if r.machine.Peak(game) != 1 {
			t.Error("two copies")
		}
	})
}

// starts notes when processes begin until a time has passed.
func (r *rig) starts(total time.Duration) []time.Duration {
	var at []time.Duration
	began, seen := time.Now(), r.machine.Starts(game)
	for time.Since(began) < total {
		r.after(100 * time.Millisecond)
		if n := r.machine.Starts(game); n != seen {
			seen = n
			at = append(at, time.Since(began).Round(time.Second))
		}
	}
	return at
}

func TestCrashLoopBacksOff(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) { s.Control.Start, s.Policy.StartCheckSecs = "exit-after 10ms 1", 1 })
		r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
		at := r.starts(10 * time.Minute)
		if len(at) < 8 || len(at) > 12 {
			t.Fatalf("%d starts in 10 minutes, at %v", len(at), at)
		}

		// After the first one, whose end is known at once: at once, 10 s, 10 s, 10 s, then 16, 32, 64 …
		want := []int{0, 10, 20, 30, 46, 78, 142, 270, 526}
		for i, secs := range want {
			if got := at[i].Seconds(); got < float64(secs)-1 || got > float64(secs)+1 {
				t.Errorf("start %d at %gs, want about %d s (all: %v)", i, got, secs, at)
			}
		}

		st := r.status()
		if !strings.HasPrefix(st.Message, "crash loop: 10 exits, next start in 300 s: ") ||
			st.State != gozzard.StateStopped {
			t.Errorf("status %#v", st)
		}

		r.after(time.Hour)

		if at := r.starts(20 * time.Minute); len(at) < 3 {
			t.Errorf("back-off beyond its cap: %v", at)
		}

		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true) // a manual start begins anew

		if st := r.status(); st.Message != "" {
			t.Errorf("message %q", st.Message)
		}

		r.end(supervise.Exit{})
		r.alive(1)
	})
}

func TestWithoutRetriesOnlyTheBackOff(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) {
			s.Control.Start, s.Policy.StartCheckSecs, s.Policy.StartRetries,
				s.Policy.StartInterval = "exit-after 10ms", 0, 0, 0
		})
		r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
		at := r.starts(time.Minute)
		if len(at) != 5 { // after the first one: about 1, 3, 7, 15, 31
			t.Errorf("starts at %v", at)
		}
	})
}

func TestFailingStartCommandIsReported(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("fail 3 no such config"), gozzard.CodeOK, true)
		r.after(5 * time.Second)
		if st := r.status(); st.Message != "backing off: 2 exits, next start in 10 s: no such config" {
			t.Errorf("message %q", st.Message)
		}
		r.want(gozzard.ActionHost, start(""), gozzard.CodeOK, true)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		r.want(gozzard.ActionHost, start(""), gozzard.CodeOK, true)
		if st := r.status(); st.Message != "supervised, but the definition has no start command: it cannot be started" {
			t.Errorf("message %q", st.Message)
		}
	})
}

func TestStopDuringBackOffMeansStaysStopped(t *testing.T) {
	for _, a := range []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionHost, start("exit-after 10ms"), gozzard.CodeOK, true)
			r.after(time.Minute)
			out := r.want(a, nil, gozzard.CodeOK, false)
			if !strings.Contains(out.Message, "nothing left to "+a.String()) {
				t.Errorf("message %q", out.Message)
			}

			n := r.machine.Starts(game)
			r.after(time.Hour)

			if r.machine.Starts(game) != n || r.status().Wanted != gozzard.StateStopped ||
				r.machine.Commands(game, a) != 0 {
				t.Error("it did not stay down, or a command was run for nothing")
			}

			r.want(a, nil, gozzard.CodeNotRunning, false)
		})
	}
}

func TestUnhostCancelsThePullUp(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("exit-after 10ms"), gozzard.CodeOK, true)
		r.after(time.Minute)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		n := r.machine.Starts(game)
		r.after(time.Hour)
		if r.machine.Starts(game) != n {
			t.Error("pulled up after unhost")
		}
	})
}

func TestRepeatedHostKeepsTheBackOff(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("exit-after 10ms"), gozzard.CodeOK, true)
		for range 600 {
			r.after(time.Second)
			r.want(gozzard.ActionHost, nil, gozzard.CodeOK, true)
		}
		if n := r.machine.Starts(game); n > 12 {
			t.Errorf("%d starts in 10 minutes", n)
		}
	})
}

func TestStopDoesNotRaceWithAPullUp(t *testing.T) {
	bubble(t, func(r *rig) { // the exit is seen while stop_cmd runs
		spec := definition(func(s *gozzard.Spec) { s.Control.Stop = "sleep 5s" })
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		done := r.apply(gozzard.ActionStop, game, nil)
		r.after(time.Second)
		r.end(supervise.Exit{})

		if st := r.status(); st.State != gozzard.StateStopped {
			t.Errorf("status during stop: %#v", st)
		}
		if out := <-done; out.Code != gozzard.CodeOK || out.Hosted {
			t.Errorf("stop: %+v", out)
		}

		r.after(time.Hour)

		if r.machine.Starts(game) != 1 {
			t.Error("pulled up in or after a stop")
		}
	})

	bubble(t, func(r *rig) { // the exit and the stop come in the same moment
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.machine.End(game, supervise.Exit{})
		if out := r.do(gozzard.ActionStop, nil); out.Hosted || out.Code != gozzard.CodeOK {
			t.Errorf("stop: %+v", out)
		}
		r.after(time.Hour)
		r.alive(0)
	})

	bubble(t, func(r *rig) { // a stop does not wait for the check of a pull-up
		spec := definition(func(s *gozzard.Spec) { s.Policy.StartCheckSecs = 1000 })
		r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
		r.after(time.Second)
		r.alive(1)
		began := time.Now()
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		if time.Since(began) > time.Second {
			t.Errorf("stop took %s", time.Since(began))
		}
		r.after(time.Hour)
		r.alive(0)
	})
}

func TestTimerOfAnEarlierRunDoesNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("exit-after 10ms"), gozzard.CodeOK, true)
		r.after(100 * time.Second) // a pull-up waits
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		n := r.machine.Starts(game)
		r.after(time.Hour)
		if r.machine.Starts(game) != n || r.machine.Peak(game) != 1 {
			t.Error("an old timer started something")
		}
	})
}

func TestSuccessorIsAdoptedNotDoubled(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		old := r.machine.Live(game)[0]
		p := r.machine.Launch(game) // replaces itself, as servers do for an upgrade
		if err := r.machine.Signal(old, supervise.SignalKill); err != nil {
			t.Fatal(err)
		}
		r.after(time.Minute)
		if st := r.status(); int(st.PID) != p.PID || r.machine.Commands(game, gozzard.ActionStart) != 1 {
			t.Errorf("status %#v", st)
		}
	})
}

func TestStartedByHandIsSeenWithinAnInterval(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		p := r.machine.Launch(game)
		r.after(11 * time.Second)
		st := r.status()
		if int(st.PID) != p.PID || st.State != gozzard.StateRunning || st.Hosted || st.Version != "1.0" {
			t.Errorf("status %#v", st)
		}
		r.end(supervise.Exit{}) // and is watched from then on
		if st := r.status(); st.State != gozzard.StateStopped {
			t.Errorf("status %#v", st)
		}
	})
}

func TestUsage(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.after(time.Minute)
		n := len(r.changed())
		r.after(10 * time.Minute)

		if len(r.changed()) != n {
			t.Error("an idle process was reported")
		}

		r.machine.SetUsage(game, supervise.Usage{CPU: 50, Mem: 10, FD: 100})
		r.after(11 * time.Second)
		all := r.changed()
		if len(all) != n+1 || all[n].CPU != 50 || all[n].Mem != 10 || all[n].FD != 100 {
			t.Errorf("reported %d times more, last %+v", len(all)-n, all[len(all)-1])
		}

		// The change is too small to be reported, but a query sees it.
		r.machine.SetUsage(game, supervise.Usage{CPU: 50.5, Mem: 10, FD: 101})
		r.after(11 * time.Second)

		if st := r.status(); len(r.changed()) != n+1 || st.CPU != 50.5 || st.FD != 101 {
			t.Errorf("status %#v", st)
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)

		if st := r.status(); st.CPU != 0 || st.Mem != 0 || st.FD != 0 {
			t.Errorf("usage of a stopped process: %+v", st)
		}
	})
}

func TestVersionTexts(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"print  1.2.19 ; print second line", "1.2.19"},
		{"fail 1 broken", ""},
		{"hang", ""},
		{"cannot be run", ""},
		{"", ""},
		{"print " + strings.Repeat("版", 40), strings.Repeat("版", 21)},
		{"print \xff2.0", "\ufffd2.0"},
	} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Version = c.version }),
				gozzard.CodeOK, true)
			r.after(time.Minute)
			if got := r.status().Version; got != c.want {
				t.Errorf("%q: version %q, want %q", c.version, got, c.want)
			}
		})
	}
}

func TestManyProcessesCostNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.up()
		defer r.down()
		const n = 200
		var all []<-chan gozzard.Outcome
		for i := range n {
			all = append(all, r.apply(gozzard.ActionStart,
				gozzard.Key{Namespace: "many", Name: string(rune('一' + i))}, definition(nil)))
		}

		for _, done := range all {
			if out := <-done; out.Code != gozzard.CodeOK {
				t.Fatalf("%+v", out)
			}
		}

		r.after(time.Minute)

		if g := goroutines(); g > 50 {
			t.Errorf("%d goroutines for %d idle processes", g, n)
		}

		st := r.s.Statuses()
		if len(st) != n || r.s.Len() != n || len(r.machine.Keys()) != n {
			t.Fatalf("%d statuses", len(st))
		}

		for i := 1; i < n; i++ {
			if st[i-1].Key.Compare(st[i].Key) >= 0 || st[i].ReportedAt != time.Now().Unix() {
				t.Fatal("not in order, or not of now")
			}
		}
	})
}
