package supervise_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func checked(cmd string, change func(*gozzard.Spec)) []byte {
	return definition(func(s *gozzard.Spec) {
		s.Control.Health, s.Control.Version = cmd, ""
		if change != nil {
			change(s)
		}
	})
}

func (r *rig) health() string {
	r.t.Helper()
	out := r.do(gozzard.ActionQuery, nil)
	return out.Detail.Health
}

func TestHealth(t *testing.T) {
	for _, c := range []struct{ cmd, want string }{
		{"ok", "ok"},
		{"fail 2 no answer on port 80", "health_cmd exited with 2: no answer on port 80"},
		{"fail 1", "health_cmd exited with 1"},
		{"hang", "health_cmd did not end within 10 s"},
		{"cannot fork", "cannot run health_cmd: fork"},
	} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, checked(c.cmd, nil), gozzard.CodeOK, true)
			r.events()

			if h := r.health(); h != "" {
				t.Errorf("%q: health %q before the first probe", c.cmd, h)
			}

			r.after(60 * time.Second)

			if h := r.health(); c.want != "ok" && h != "" {
				t.Errorf("%q: health %q before the threshold", c.cmd, h)
			}

			r.after(60 * time.Second)

			if h := r.health(); h != c.want {
				t.Errorf("%q: health %q, want %q", c.cmd, h, c.want)
			}
			if c.want == "ok" {
				r.kinds()
				return
			}

			r.after(10 * time.Minute)

			if m := r.status().Message; m != "unhealthy: "+c.want {
				t.Errorf("message %q", m)
			}
			if es := r.kinds(gozzard.EventHealth); es[0].Message != "unhealthy: "+c.want { // once
				t.Errorf("%+v", es)
			}
			if r.machine.Starts(game) != 1 {
				t.Error("restarted without a request")
			}

			r.want(gozzard.ActionUpdate, checked("ok", nil), gozzard.CodeOK, true)
			r.after(41 * time.Second)

			if es := r.kinds(gozzard.EventHealth); es[0].Message != "healthy again" || r.status().Message != "" ||
				r.health() != "ok" {
				t.Errorf("%+v, message %q", es, r.status().Message)
			}
		})
	}
}

func TestHealthFollowsItsDefinition(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := checked("sleep 3s; fail 1", func(s *gozzard.Spec) {
			s.Policy.HealthInterval, s.Policy.HealthTimeout, s.Policy.HealthThreshold = 1, 5, 2
		})

		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.after(30 * time.Second)

		if n := r.machine.Commands(game, gozzard.ActionQuery); n < 6 || n > 10 { // 1 s after the end of the one before
			t.Errorf("%d probes", n)
		}
		if r.machine.InFlight(game) > 1 {
			t.Error("two probes at a time")
		}
		if h := r.health(); h != "health_cmd exited with 1" {
			t.Errorf("health %q", h)
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)

		if m, h := r.status().Message, r.health(); m != "" || h != "" {
			t.Errorf("message %q, health %q of a stopped process", m, h)
		}

		r.after(10 * time.Second)
		n := r.machine.Commands(game, gozzard.ActionQuery)
		r.after(time.Hour)

		if r.machine.Commands(game, gozzard.ActionQuery) != n {
			t.Error("a stopped process is probed")
		}
	})
}

func TestUnhealthyIsRestarted(t *testing.T) {
	bubble(t, func(r *rig) {
		sick := checked("fail 1", func(s *gozzard.Spec) { s.Policy.HealthRestart, s.Policy.HealthInterval = true, 1 })
		r.want(gozzard.ActionStart, sick, gozzard.CodeOK, true)
		r.events()
		r.after(4 * time.Second)

		if r.machine.Starts(game) != 2 || r.machine.Commands(game, gozzard.ActionRestart) != 1 {
			t.Fatalf("%d starts", r.machine.Starts(game))
		}

		r.after(5 * time.Second)
		es := r.kinds(gozzard.EventHealth, gozzard.EventExited, gozzard.EventStarted, gozzard.EventRestarted)
		if m := es[3].Message; m != "restarted bash, which was unhealthy: health_cmd exited with 1" {
			t.Errorf("%q", m)
		}

		r.after(time.Hour) // one that never gets well is restarted ever more slowly

		if n := r.machine.Starts(game); n < 8 || n > 25 || r.machine.Peak(game) != 1 {
			t.Errorf("%d starts in an hour", n)
		}

		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		n := r.machine.Starts(game)
		r.after(time.Hour)

		if r.machine.Starts(game) != n {
			t.Error("restarted though not hosted")
		}
	})
}

func TestHealthDelaysNoOperation(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, checked("hang", func(s *gozzard.Spec) {
			s.Policy.HealthInterval,
				s.Policy.HealthTimeout = 1, 600
		}), gozzard.CodeOK, true)
		r.after(10 * time.Second)
		began := time.Now()
		r.want(gozzard.ActionReload, nil, gozzard.CodeOK, true)
		if time.Since(began) > time.Second {
			t.Error("an operation waited for a probe")
		}
		r.end(supervise.Exit{})
		r.alive(1)
	})
}
