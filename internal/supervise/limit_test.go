package supervise_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestStrikes(t *testing.T) {
	calm, busy := supervise.Usage{CPU: 10}, supervise.Usage{CPU: 31}
	r := gozzard.Resource{CPU: 30, Samples: 3}
	for _, c := range []struct {
		name    string
		limits  gozzard.Resource
		samples []supervise.Usage
		want    string // for each sample: . nothing, ! first time, + again, w well again
	}{
		{"three in a row", r, []supervise.Usage{busy, busy, busy, busy, busy, busy, calm}, "..!..+w"},
		{"spikes", r, []supervise.Usage{busy, busy, calm, busy, busy, calm, busy}, "......."},
		{"on the limit", r, []supervise.Usage{{CPU: 30}, {CPU: 30}, {CPU: 30}}, "..."},
		{"no limit", gozzard.Resource{}, []supervise.Usage{busy, busy, busy}, "..."},
		{"at once", gozzard.Resource{CPU: 30, Samples: 1}, []supervise.Usage{busy, calm, busy}, "!w!"},
		{"hostile number", gozzard.Resource{CPU: 30, Samples: -1}, []supervise.Usage{busy, busy}, ".!"},
		{"by default", gozzard.Resource{CPU: 30}, []supervise.Usage{busy, calm, busy, busy}, "...!"},
		{"each limit for itself", gozzard.Resource{CPU: 30, Mem: 30},
			[]supervise.Usage{{CPU: 40}, {Mem: 40}, {CPU: 40}, {Mem: 40}}, "...."},
		{"mem", gozzard.Resource{Mem: 5, Samples: 3}, []supervise.Usage{{Mem: 6}, {Mem: 6}, {Mem: 6}}, "..!"},
		{"fd", gozzard.Resource{FD: 100, Samples: 3}, []supervise.Usage{{FD: 101}, {FD: 101}, {FD: 101}}, "..!"},
		{"disk", gozzard.Resource{Disk: 100, Samples: 3}, []supervise.Usage{{Disk: 101}, {Disk: 101}, {Disk: 101}},
			"..!"},
		{"net", gozzard.Resource{Net: 100, Samples: 3}, []supervise.Usage{{Net: 101}, {Net: 101}, {Net: 101}}, "..!"},
	} {
		var s supervise.LimitCounts
		got := ""
		for _, u := range c.samples {
			next, text, over, first, report := s.After(u, c.limits)
			s = next
			switch {
			case !report:
				got += "."
			case !over:
				got += "w"
			case first:
				got += "!"
			default:
				got += "+"
			}
			if (text != "") != over {
				t.Errorf("%s: text %q", c.name, text)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func limited(act gozzard.LimitAct, change func(*gozzard.Spec)) []byte {
	return definition(func(s *gozzard.Spec) {
		s.Resource = gozzard.Resource{CPU: 30, Act: act}
		if change != nil {
			change(s)
		}
	})
}

func TestOverALimit(t *testing.T) {
	for _, c := range []struct {
		act      gozzard.LimitAct
		change   func(*gozzard.Spec)
		commands gozzard.Action
		message  string
	}{
		{"", nil, gozzard.ActionKill, "killed"},
		{"", func(s *gozzard.Spec) { s.Control.Kill = "" }, 0, "killed"},
		{"unheard of", nil, gozzard.ActionKill, "killed"},
		{gozzard.ActKill, func(s *gozzard.Spec) { s.Control.Kill = "nothing" }, gozzard.ActionKill, "killed"},
		{gozzard.ActStop, nil, gozzard.ActionStop, "stopped"},
		{gozzard.ActStop, func(s *gozzard.Spec) { s.Control.Stop = "" }, 0, "stopped"},
		{gozzard.ActStop, func(s *gozzard.Spec) { s.Control.Stop = "fail 1 no" }, gozzard.ActionStop,
			"killed, since it did not stop"},
		{gozzard.ActStop, func(s *gozzard.Spec) { s.Control.Start, s.Control.Stop = "stubborn", "" }, 0,
			"killed, since it did not stop"},
		{gozzard.ActRestart, nil, gozzard.ActionRestart, "restarted"},
		{gozzard.ActRestart, func(s *gozzard.Spec) { s.Control.Restart = "" }, gozzard.ActionStop, "restarted"},
	} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, limited(c.act, c.change), gozzard.CodeOK, true)
			pid := r.status().PID
			r.after(2 * time.Minute)
			r.machine.SetUsage(game, supervise.Usage{CPU: 45.25, FD: 3})
			r.after(10 * time.Second)

			if r.status().PID != pid || r.machine.Starts(game) != 1 {
				t.Fatalf("%s: acted too early", c.act)
			}

			r.after(5 * time.Second)
			r.machine.SetUsage(game, supervise.Usage{FD: 3})
			r.events()
			r.after(time.Minute)
			st := r.status()
			want := "cpu 45.2 % is over its limit of 30 % in 2 samples in a row; " + c.message
			if st.PID == pid || !st.Hosted || st.State != gozzard.StateRunning || st.Message != want {
				t.Errorf("%s: status %#v, want message %q", c.act, st, want)
			}
			if c.commands != 0 && r.machine.Commands(game, c.commands) != 1 {
				t.Errorf("%s: %d %s commands", c.act, r.machine.Commands(game, c.commands), c.commands)
			}
			if r.machine.Starts(game) != 2 || r.machine.Peak(game) != 1 || !r.record().Hosted {
				t.Errorf("%s: %d starts", c.act, r.machine.Starts(game))
			}

			r.want(gozzard.ActionRestart, nil, gozzard.CodeOK, true) // an operation resets the counts

			if m := r.status().Message; m != "" {
				t.Errorf("%s: message %q", c.act, m)
			}
		})
	}
}

func TestOverALimitIsAnEvent(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, limited("", nil), gozzard.CodeOK, true)
		r.events()
		r.after(2 * time.Minute)
		r.machine.SetUsage(game, supervise.Usage{CPU: 45})
		r.after(32 * time.Second)
		r.machine.SetUsage(game, supervise.Usage{})
		r.after(10 * time.Second)
		es := r.kinds(gozzard.EventExited, gozzard.EventLimitExceeded, gozzard.EventStarted,
			gozzard.EventRestarted)
		if es[1].PID != es[0].PID || es[1].Message != "cpu 45 % is over its limit of 30 % in 2 samples in a row; killed" {
			t.Errorf("%+v", es[1])
		}
	})
}

func TestAlwaysOverALimitBacksOff(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := limited("", func(s *gozzard.Spec) { s.Resource.Samples = 1 })
		r.machine.SetUsage(game, supervise.Usage{CPU: 45})
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.after(30 * time.Minute)
		if n := r.machine.Starts(game); n < 5 || n > 20 {
			t.Errorf("%d starts in half an hour", n)
		}
		if m := r.status().Message; !strings.Contains(m,
			"cpu 45 % is over its limit of 30 % in 1 samples in a row; killed (") {
			t.Errorf("message %q", m)
		}
	})
}

func TestAlertTouchesNothing(t *testing.T) {
	for _, hosted := range []bool{true, false} { // what is not hosted is left alone, whatever its definition says
		bubble(t, func(r *rig) {
			act := gozzard.ActAlert

			if !hosted {
				act = gozzard.ActKill
			}

			r.want(gozzard.ActionStart, limited(act, nil), gozzard.CodeOK, true)

			if !hosted {
				r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
			}

			r.events()
			r.machine.SetUsage(game, supervise.Usage{CPU: 45})
			r.after(10 * time.Minute)

			if st := r.status(); st.Message != "cpu 45 % is over its limit of 30 % in 2 samples in a row" ||
				r.machine.Starts(game) != 1 {
				t.Errorf("status %#v", st)
			}

			r.kinds(gozzard.EventLimitExceeded) // once, not with every sample
			r.machine.SetUsage(game, supervise.Usage{CPU: 5})
			r.after(20 * time.Second)

			if m := r.status().Message; m != "" {
				t.Errorf("message %q", m)
			}

			r.machine.SetUsage(game, supervise.Usage{CPU: 45})
			r.after(time.Minute)
			r.kinds(gozzard.EventLimitExceeded)
		})
	}
}

func TestLimitsChangeLive(t *testing.T) {
	bubble(t, func(r *rig) {
		r.machine.SetUsage(game, supervise.Usage{CPU: 45})
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.after(5 * time.Minute)
		pid := r.status().PID
		r.want(gozzard.ActionUpdate, limited("", func(s *gozzard.Spec) { s.Resource.CPU = 50 }), gozzard.CodeOK, true)
		r.after(5 * time.Minute)

		if r.status().PID != pid || len(r.machine.Limits(game)) != 0 {
			t.Fatal("an update of limits restarted the process, or asked the kernel for nothing")
		}

		r.want(gozzard.ActionUpdate, limited("", nil), gozzard.CodeOK, true)
		r.after(40 * time.Second)

		if r.status().PID == pid {
			t.Error("a lower limit had no effect")
		}
	})
}

func TestLimitDuringAnOperationWaits(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := limited("", func(s *gozzard.Spec) { s.Control.Reload = "sleep 50s" })
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.machine.SetUsage(game, supervise.Usage{CPU: 45})
		done := r.apply(gozzard.ActionReload, game, nil)
		r.after(49 * time.Second)

		if r.machine.Starts(game) != 1 {
			t.Fatal("ended in the middle of an operation")
		}
		if out := <-done; out.Code != gozzard.CodeOK {
			t.Errorf("reload: %+v", out)
		}

		r.after(10 * time.Second)

		if r.machine.Starts(game) != 2 {
			t.Error("the limit was forgotten")
		}
	})
}

func TestKernelHoldsLimits(t *testing.T) {
	bubble(t, func(r *rig) {
		enforced := limited("", func(s *gozzard.Spec) { s.Resource.Enforce = true })
		r.want(gozzard.ActionStart, enforced, gozzard.CodeOK, true)
		before := len(r.machine.Limits(game))
		if l := r.machine.Limits(game); before == 0 || l[0].CPU != 30 || r.status().Message != "" {
			t.Fatalf("limits %+v, message %q", l, r.status().Message)
		}

		r.want(gozzard.ActionUpdate, limited("", func(s *gozzard.Spec) {
			s.Resource.Enforce, s.Resource.CPU = true,
				40
		}), gozzard.CodeOK, true)

		r.want(gozzard.ActionUpdate, limited("", nil), gozzard.CodeOK, true) // and lets go
		r.want(gozzard.ActionUpdate, definition(nil), gozzard.CodeOK, true)  // there are no limits to remove

		if l := r.machine.Limits(game)[before:]; len(l) != 2 || l[0].CPU != 40 || l[1].Enforce ||
			r.machine.Starts(game) != 1 {
			t.Errorf("limits %+v", l)
		}

		r.want(gozzard.ActionUpdate, enforced, gozzard.CodeOK, true)
		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false)

		if l := r.machine.Limits(game); l[len(l)-1] != (gozzard.Resource{}) {
			t.Errorf("limits of what is managed no longer: %+v", l)
		}
	})

	bubble(t, func(r *rig) {
		r.machine.SetKernel("", errors.New("no controller"))
		r.want(gozzard.ActionStart, limited("", func(s *gozzard.Spec) { s.Resource.Enforce = true }), gozzard.CodeOK,
			true)
		if m := r.status().Message; m != "its limits are not held by the kernel: no controller" {
			t.Errorf("message %q", m)
		}
	})
}
