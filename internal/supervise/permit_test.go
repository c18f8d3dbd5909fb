package supervise_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// A process that the policy forbids after its start keeps running. Until it is allowed again, the supervisor does not
// start, probe or restart it, does not act on its limits, and starts no planned run.
func TestForbiddenIsLeftAlone(t *testing.T) {
	commands := func(r *rig) (n int) {
		for a := gozzard.ActionStart; a <= gozzard.ActionUnregister; a++ {
			n += r.machine.Commands(game, a)
		}
		return n
	}

	said := func(r *rig) {
		t.Helper()
		if m := r.status().Message; !strings.Contains(m, errForbidden.Error()) {
			t.Errorf("status says %q", m)
		}
	}

	t.Run("pull-up", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
			r.forbids.Store(true)
			before := commands(r)
			r.end(supervise.Exit{Known: true, Code: 1})
			r.after(30 * time.Minute)
			r.alive(0)
			said(r)

			if n := commands(r); n != before {
				t.Errorf("%d commands", n-before)
			}

			r.forbids.Store(false)
			r.after(10 * time.Minute)
			r.alive(1)
		})
	})

	t.Run("version", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
			r.down()
			r.forbids.Store(true)
			before := commands(r)
			r.up()
			r.after(time.Minute)
			if n := commands(r); n != before || r.status().Version != "" {
				t.Errorf("%d commands", n-before)
			}
		})
	})

	t.Run("health", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, checked("fail 1", func(s *gozzard.Spec) { s.Policy.HealthRestart = true }),
				gozzard.CodeOK, true)

			r.forbids.Store(true)
			before := commands(r)
			r.after(time.Hour)
			r.alive(1)
			said(r)

			if n := commands(r); n != before || r.machine.Starts(game) != 1 {
				t.Errorf("%d commands, %d starts", n-before, r.machine.Starts(game))
			}

			r.forbids.Store(false)
			r.after(time.Hour)

			if r.machine.Starts(game) < 2 {
				t.Error("not restarted when it was allowed again")
			}
		})
	})

	t.Run("restart of the unhealthy", func(t *testing.T) { // it was found unhealthy while it was allowed
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, checked("fail 1",
				func(s *gozzard.Spec) { s.Policy.HealthRestart, s.Policy.StartRetries = true, 0 }), gozzard.CodeOK,
				true)

			for range 3000 { // until a restart is due
				if r.health() != "" {
					break
				}
				r.after(100 * time.Millisecond)
			}

			r.forbids.Store(true)
			r.after(time.Hour)
			r.alive(1)

			if r.machine.Starts(game) != 1 {
				t.Errorf("%d starts", r.machine.Starts(game))
			}
		})
	})

	for _, act := range []gozzard.LimitAct{gozzard.ActStop, gozzard.ActKill, gozzard.ActRestart} {
		t.Run("limit "+string(act), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.want(gozzard.ActionStart, limited(act, nil), gozzard.CodeOK, true)
				r.forbids.Store(true)
				r.machine.SetUsage(game, supervise.Usage{CPU: 99, Mem: 99, FD: 1 << 20})
				before := commands(r)
				r.after(time.Hour)
				r.alive(1)
				said(r)
				if n := commands(r); n != before || r.machine.Starts(game) != 1 {
					t.Errorf("%d commands, %d starts", n-before, r.machine.Starts(game))
				}
			})
		})
	}

	t.Run("periodic", func(t *testing.T) {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionHost, definition(func(s *gozzard.Spec) {
				s.Policy.Kind, s.Policy.CrontabRule, s.Control.Start = gozzard.KindPeriodic, "* * * * *",
					"exit-after 1s"
			}), gozzard.CodeOK, true)
			r.after(10 * time.Minute)
			ran := r.machine.Starts(game)
			r.forbids.Store(true)
			r.after(10 * time.Minute)
			if n := r.machine.Starts(game); ran == 0 || n != ran {
				t.Errorf("%d runs, then %d", ran, n-ran)
			}
			said(r)
		})
	})
}
