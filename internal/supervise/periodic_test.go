package supervise_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// planned makes a periodic definition. The clock of a bubble begins at midnight UTC of 2000-01-01.
func planned(rule, cmd string, change func(*gozzard.Spec)) []byte {
	return definition(func(s *gozzard.Spec) {
		s.Policy.Kind, s.Policy.CrontabRule, s.Policy.TimeZone, s.Control.Start = gozzard.KindPeriodic, rule, "UTC", cmd
		if change != nil {
			change(s)
		}
	})
}

func TestPeriodicRuns(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, planned("*/10 * * * *", "exit-after 2s", nil), gozzard.CodeOK, true)

		if m := r.status().Message; m != "next run 2000-01-01 00:10:00 +00:00" || r.machine.Starts(game) != 0 {
			t.Fatalf("message %q", m)
		}

		r.after(10*time.Minute + time.Second)
		r.alive(1)
		r.after(2 * time.Minute)
		r.alive(0)

		if m := r.status().Message; m != "the process exited with 0; next run 2000-01-01 00:20:00 +00:00" {
			t.Errorf("message %q", m)
		}
		if es := r.kinds(gozzard.EventStarted, gozzard.EventRan); es[1].Code != 0 || es[1].PID != es[0].PID {
			t.Errorf("%+v", es)
		}

		r.after(time.Hour)

		if n := r.machine.Starts(game); n != 7 {
			t.Errorf("%d runs in 72 minutes", n)
		}

		r.events()
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false) // not running, yet it stays down
		r.after(time.Hour)

		if n := r.machine.Starts(game); n != 7 || r.status().Message != "" {
			t.Errorf("%d runs, message %q", n, r.status().Message)
		}
	})
}

func TestPeriodicExitCodesAreKept(t *testing.T) {
	for _, c := range []struct{ cmd, message string }{
		{"exit-after 2s 3", "not running: bash; the process exited with 3"},
		{"exit-after 20s 3", "the process exited with 3"},
		{"exit-after 20s", "the process exited with 0"},
		{"nothing", "start_cmd exited with 0 and nothing of it runs any more"},
		{"sleep 3s; nothing", "start_cmd exited with 0 and nothing of it runs any more"},
		{"fail 4 no table", "no table"},
		{"front; exit-after 20s 3", "the process exited with 3"},
	} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionHost, planned("@hourly", c.cmd, nil), gozzard.CodeOK, true)
			r.after(61 * time.Minute)

			if m := r.status().Message; m != c.message+"; next run 2000-01-01 02:00:00 +00:00" {
				t.Errorf("%q: message %q", c.cmd, m)
			}

			ran := 0
			for _, e := range r.events() {
				if e.Kind == gozzard.EventRan {
					ran++
				}
			}

			if ran != 1 {
				t.Errorf("%q: %d events of a run", c.cmd, ran)
			}

			r.after(10 * time.Minute)

			if n := r.machine.Commands(game, gozzard.ActionStart); n != 1 {
				t.Errorf("%q: %d starts: pulled up", c.cmd, n)
			}
		})
	}
}

func TestPeriodicOverlap(t *testing.T) {
	for overlap, want := range map[gozzard.Overlap]int{"": 1, gozzard.OverlapSkip: 1, gozzard.OverlapKill: 3} {
		bubble(t, func(r *rig) {
			spec := planned("*/10 * * * *", "ok", func(s *gozzard.Spec) { s.Policy.Overlap = overlap })
			r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
			r.after(31 * time.Minute)
			if n := r.machine.Starts(game); n != want || r.machine.Peak(game) != 1 {
				t.Errorf("%s: %d runs, %d at a time", overlap, n, r.machine.Peak(game))
			}
			left := strings.HasPrefix(r.status().Message,
				"the run of 2000-01-01 00:30:00 +00:00 was skipped: the previous run is still running; next run ")
			if left != (want == 1) {
				t.Errorf("%s: message %q", overlap, r.status().Message)
			}
			r.alive(1)
		})
	}
}

func TestPeriodicMissedRunsAreNotMadeUp(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, planned("*/10 * * * *", "exit-after 1s", nil), gozzard.CodeOK, true)
		r.down()
		r.after(95 * time.Minute)
		r.up()
		r.after(time.Minute)
		if n := r.machine.Starts(game); n != 0 || r.status().Message != "next run 2000-01-01 01:40:00 +00:00" {
			t.Errorf("%d runs, message %q", n, r.status().Message)
		}
		r.after(5 * time.Minute)
		if n := r.machine.Starts(game); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestPeriodicRuleChanges(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, planned("61 * * * *", "exit-after 1s", nil), gozzard.CodeOK, true)

		if m := r.status().Message; !strings.HasPrefix(m,
			`supervised, but it never runs: "61 * * * *" is not a crontab rule: minute "61"`) {
			t.Errorf("message %q", m)
		}

		r.want(gozzard.ActionUpdate, planned("@every 45s", "exit-after 1s", nil), gozzard.CodeOK, true)
		r.after(10 * time.Minute)

		if n := r.machine.Starts(game); n != 13 {
			t.Errorf("%d runs", n)
		}

		// without a rule it is a resident one
		r.want(gozzard.ActionUpdate, planned(" ", "ok", nil), gozzard.CodeOK, true)
		r.after(time.Minute)
		r.alive(1)
		r.end(supervise.Exit{Known: true})
		r.after(time.Minute)
		r.alive(1)
	})
}

func TestOneShotVerdicts(t *testing.T) {
	for _, c := range []struct {
		cmd     string
		code    gozzard.Code
		message string
	}{
		{"exit-after 1s", gozzard.CodeOK, "the process exited with 0"},
		{"exit-after 1s 3", gozzard.CodeCheckFailed,
			"not running: bash; the process exited with 3"},
		{"nothing", gozzard.CodeOK, "start_cmd exited with 0 and nothing of it runs any more"},
		{"front; exit-after 1s", gozzard.CodeOK, "the process exited with 0"},
		{"front; exit-after 5ms", gozzard.CodeOK, "start_cmd exited with 0 and nothing of it runs any more"},
		{"fail 5 wrong", gozzard.CodeCommandFailed, "wrong"},
	} {
		bubble(t, func(r *rig) {
			spec := definition(func(s *gozzard.Spec) { s.Policy.Kind, s.Control.Start = gozzard.KindOneShot, c.cmd })
			out := r.want(gozzard.ActionStart, spec, c.code, c.code == gozzard.CodeOK)
			if out.Message != c.message || r.status().Message != c.message {
				t.Errorf("%q: %q, status %q", c.cmd, out.Message, r.status().Message)
			}
			r.after(time.Hour)
			if n := r.machine.Commands(game, gozzard.ActionStart); n != 1 {
				t.Errorf("%q: %d starts", c.cmd, n)
			}
		})
	}

	bubble(t, func(r *rig) { // how it ended is not known: it is as for any process
		spec := definition(func(s *gozzard.Spec) { s.Policy.Kind = gozzard.KindOneShot })
		done := r.apply(gozzard.ActionStart, game, spec)
		r.after(time.Second)
		r.end(supervise.Exit{})
		if out := <-done; out.Code != gozzard.CodeCheckFailed {
			t.Errorf("%+v", out)
		}
	})
}

func TestPeriodicWhenTheClockIsSet(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, planned("0 * * * *", "exit-after 1s", nil), gozzard.CodeOK, true)
		r.after(5 * time.Minute)
		r.skew.Store(int64(54*time.Minute + 50*time.Second)) // it is 00:59:50 now
		r.after(25 * time.Second)
		if n := r.machine.Starts(game); n != 1 {
			t.Fatalf("%d runs after the clock was set forward", n)
		}
		r.skew.Store(int64(-240 * time.Hour)) // far back: what was planned is days away
		r.after(70 * time.Minute)
		if n := r.machine.Starts(game); n != 2 {
			t.Errorf("%d runs after the clock was set back", n)
		}
	})
}
