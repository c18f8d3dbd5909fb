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

func TestStartTakesTheWholeCheck(t *testing.T) {
	bubble(t, func(r *rig) {
		began := time.Now()
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)

		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("verdict after %s, want the 5 s of the start check", took)
		}

		st := r.status()
		if st.State != gozzard.StateRunning || st.Wanted != gozzard.StateRunning || st.PID <= 1 ||
			st.Version != "1.0" || st.FD == 0 || st.Mem == 0 {
			t.Errorf("status after start: %#v", st)
		}

		if rec := r.record(); rec.LastStart != began.Unix() || rec.RegisteredAt != began.Unix() ||
			rec.Wanted != gozzard.StateRunning {
			t.Errorf("record after start: %+v", rec)
		}

		out := r.want(gozzard.ActionStart, nil, gozzard.CodeAlreadyRunning, true)
		if out.Message != "already running: bash" {
			t.Errorf("message %q", out.Message)
		}
		if n := r.machine.Commands(game, gozzard.ActionStart); n != 1 {
			t.Errorf("start_cmd ran %d times", n)
		}
	})
}

func TestCommandsThatFail(t *testing.T) {
	for _, c := range []struct {
		name, start, message string
		code                 gozzard.Code
	}{
		{"printing", "fail 3 no such config", "no such config", gozzard.CodeCommandFailed},
		{"silent", "fail 3", "start_cmd exited with 3 and printed nothing", gozzard.CodeCommandFailed},
		{"hanging", "hang", "start_cmd did not end within 60 s and was killed", gozzard.CodeCommandFailed},
		{"hanging and printing", "print waiting for the lock; hang",
			"start_cmd did not end within 60 s and was killed; last output: waiting for the lock",
			gozzard.CodeCommandFailed},
		{"not to be run", "cannot no such user", "cannot run start_cmd: no such user", gozzard.CodeCommandFailed},
		{"missing", "", "the definition has no start command: give it command (start_cmd)", gozzard.CodeCommandFailed},
		{"dying", "print bad port; exit-after 2s 7",
			"not running: bash; the process exited with 7; no process of gse:game_1 on this machine; last output: bad port", gozzard.CodeCheckFailed},
		{"without effect", "nothing",
			"not running: bash; no process of gse:game_1 on this machine",
			gozzard.CodeCheckFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				out := r.want(gozzard.ActionStart, start(c.start), c.code, false)
				if out.Message != c.message {
					t.Errorf("message %q, want %q", out.Message, c.message)
				}
				if st := r.status(); st.State != gozzard.StateStopped || st.PID != -1 || st.Message != c.message ||
					st.Wanted != gozzard.StateStopped {
					t.Errorf("status %#v", st)
				}
				r.after(time.Hour)
				r.alive(0)
			})
		})
	}
}

func TestSlowDaemonIsFoundWithinTheCheck(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, start("after 4s"), gozzard.CodeOK, true)
	})
	bubble(t, func(r *rig) { // a check of 0 s is over at once, but a daemon that needs a moment does not fail
		spec := definition(func(s *gozzard.Spec) { s.Control.Start, s.Policy.StartCheckSecs = "after 100ms", 0 })
		began := time.Now()
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestStop(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		out := r.want(gozzard.ActionStop, nil, gozzard.CodeNotRunning, false)
		if out.Message != "not running: bash" {
			t.Errorf("message %q", out.Message)
		}

		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		began := time.Now()

		if out := r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false); out.Forced {
			t.Error("forced")
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("stop waited %s for a process that was gone", took)
		}
		if st := r.status(); st.State != gozzard.StateStopped || st.Wanted != gozzard.StateStopped || st.PID != -1 ||
			st.Message != "" {
			t.Errorf("status %#v", st)
		}

		r.after(time.Hour)
		r.alive(0)

		if n := r.machine.Commands(game, gozzard.ActionStop); n != 1 {
			t.Errorf("stop_cmd ran %d times", n)
		}
	})
}

func TestStopsThatFail(t *testing.T) {
	for _, c := range []struct {
		name, stop, prefix string
		code               gozzard.Code
	}{
		{"without effect", "nothing", "still running: bash; pid ",
			gozzard.CodeCheckFailed},
		{"too slow", "after 10s", "still running: bash; pid ",
			gozzard.CodeCheckFailed},
		{"printing", "fail 1 no pid file", "no pid file", gozzard.CodeCommandFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Stop = c.stop }),
					gozzard.CodeOK, true)
				out := r.want(gozzard.ActionStop, nil, c.code, true)
				if !strings.HasPrefix(out.Message, c.prefix) {
					t.Errorf("message %q", out.Message)
				}
				r.alive(1)
			})
		})
	}
}

func TestStopWithoutCommand(t *testing.T) {
	for _, c := range []struct {
		start  string
		forced bool
		least  time.Duration
	}{{"ok", false, 0}, {"stubborn", true, 5 * time.Second}} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
				s.Control.Start, s.Control.Stop = c.start,
					""
			}), gozzard.CodeOK, true)
			began := time.Now()
			out := r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
			if took := time.Since(began); out.Forced != c.forced || took < c.least || took > c.least+time.Second {
				t.Errorf("%s: forced=%v after %s", c.start, out.Forced, took)
			}
			r.alive(0)
		})
	}
}

func TestStopClearsLeftovers(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.machine.Launch(game) // a helper in the same cgroup, newer than the process: stop_cmd ends only one of them
		spec := definition(func(s *gozzard.Spec) { s.Control.Stop, s.Control.Kill = "", "" })
		r.want(gozzard.ActionStop, spec, gozzard.CodeOK, false)
		r.alive(0)
	})
}

func TestRestart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		r.want(gozzard.ActionRestart, nil, gozzard.CodeOK, true) // also when stopped
		pid := r.status().PID
		r.want(gozzard.ActionRestart, nil, gozzard.CodeOK, true)

		if st := r.status(); st.PID == pid || st.PID <= 1 || st.Wanted != gozzard.StateRunning {
			t.Errorf("status %#v, pid before %d", st, pid)
		}

		r.alive(1)

		if r.machine.Peak(game) != 1 || r.machine.Commands(game, gozzard.ActionStart) != 0 ||
			r.machine.Commands(game, gozzard.ActionStop) != 0 {
			t.Error("restart must run restart_cmd and nothing else")
		}

		bad := definition(func(s *gozzard.Spec) { s.Control.Restart = "exit-after 1s" })
		out := r.want(gozzard.ActionRestart, bad, gozzard.CodeCheckFailed, true)
		if !strings.HasPrefix(out.Message, "not running: bash; ") {
			t.Errorf("message %q", out.Message)
		}

		r.after(10 * time.Second) // hosted and dead: pulled up
		r.alive(1)
	})
}

func TestRestartWithoutCommand(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) { s.Control.Restart = "" })
		r.want(gozzard.ActionRestart, spec, gozzard.CodeOK, true)
		pid := r.status().PID
		r.want(gozzard.ActionRestart, nil, gozzard.CodeOK, true)

		if r.status().PID == pid || r.machine.Peak(game) != 1 || r.machine.Commands(game, gozzard.ActionStop) != 1 {
			t.Error("restart without command is one stop and one start")
		}

		none := definition(func(s *gozzard.Spec) { s.Control.Restart, s.Control.Start = "", "" })
		r.want(gozzard.ActionRestart, none, gozzard.CodeCommandFailed, true)
		r.alive(1)
		stuck := definition(func(s *gozzard.Spec) { s.Control.Restart, s.Control.Stop = "", "nothing" })
		r.want(gozzard.ActionRestart, stuck, gozzard.CodeCheckFailed, true)
		r.alive(1)
	})
}

func TestReload(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		pid := r.status().PID
		r.want(gozzard.ActionReload, nil, gozzard.CodeOK, true)

		if r.status().PID != pid || r.machine.Commands(game, gozzard.ActionReload) != 1 {
			t.Error("reload must run once and leave the process")
		}

		r.want(gozzard.ActionReload, definition(func(s *gozzard.Spec) { s.Control.Reload = "fail 2" }),
			gozzard.CodeCommandFailed, true)

		out := r.want(gozzard.ActionReload, definition(func(s *gozzard.Spec) { s.Control.Reload = "" }),
			gozzard.CodeCommandFailed, true)
		if out.Message != "the definition has no reload command: give it reload (reload_cmd)" {
			t.Errorf("message %q", out.Message)
		}
	})
}

func TestKill(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		r.want(gozzard.ActionKill, nil, gozzard.CodeNotRunning, false)
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		r.want(gozzard.ActionKill, nil, gozzard.CodeOK, false)
		r.alive(0)

		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) {
			s.Control.Kill, s.Control.Start = "",
				"stubborn"
		}), gozzard.CodeOK, true)

		r.want(gozzard.ActionKill, nil, gozzard.CodeOK, false)
		r.alive(0)

		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Kill = "nothing" }), gozzard.CodeOK,
			true)

		out := r.want(gozzard.ActionKill, nil, gozzard.CodeCheckFailed, true)
		if !strings.HasPrefix(out.Message, "still running: bash; pid ") {
			t.Errorf("message %q", out.Message)
		}
	})
}

func TestHostAnswersFirstAndPullsUpThen(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		began := time.Now()
		out := r.do(gozzard.ActionHost, nil)
		if out.Code != gozzard.CodeOK || !out.Hosted || time.Since(began) > 0 {
			t.Errorf("host: %+v after %s", out, time.Since(began))
		}

		r.after(time.Second)
		r.alive(1)
		r.want(gozzard.ActionHost, nil, gozzard.CodeOK, true)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)

		if st := r.status(); st.State != gozzard.StateRunning || st.Wanted != gozzard.StateRunning {
			t.Errorf("unhost touched more than the flag: %+v", st)
		}

		r.end(supervise.Exit{Known: true, Code: 4})

		if st := r.status(); st.State != gozzard.StateStopped || st.PID != -1 ||
			st.Message != "the process exited with 4" {
			t.Errorf("status after the exit of an unhosted process: %#v", st)
		}

		r.after(time.Hour)
		r.alive(0)
	})
}

func TestRegisterRunsNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.machine.Launch(game)
		began := time.Now()
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		r.after(time.Second)
		st := r.status()
		if st.State != gozzard.StateRunning || st.Wanted != gozzard.StateStopped || st.RegisteredAt != began.Unix() ||
			st.Version != "1.0" {
			t.Errorf("status %#v", st)
		}

		r.want(gozzard.ActionHost, nil, gozzard.CodeOK, true)
		r.after(time.Minute)
		newer := definition(func(s *gozzard.Spec) { s.Control.Version = "print 2.0" })
		r.want(gozzard.ActionUpdate, newer, gozzard.CodeOK, true) // flags of a known one stay
		r.after(time.Second)

		if st := r.status(); st.Version != "2.0" || st.RegisteredAt != began.Unix() ||
			st.Wanted != gozzard.StateRunning {
			t.Errorf("status after update %#v", st)
		}

		if r.machine.Starts(game) != 1 {
			t.Error("something was started")
		}
		if string(r.record().Spec) != string(newer) {
			t.Error("the new definition was not kept")
		}
	})
}

func TestUnregisterForgetsAndLeavesTheProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)

		if r.s.Len() != 1 || len(r.s.Statuses()) != 1 {
			t.Fatal("not managed")
		}

		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false)

		if _, known := r.s.Status(game); known || r.s.Len() != 0 || len(r.s.Statuses()) != 0 || len(r.journal) != 0 ||
			len(r.removed) != 1 {
			t.Error("still managed")
		}

		r.alive(1)
		r.end(supervise.Exit{})
		r.after(time.Hour)
		r.alive(0)
		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false) // also when unknown

		if len(r.removed) != 1 {
			t.Error("a removal was reported twice")
		}

		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true) // and it can come back
	})
}

func TestUnknownProcess(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, a := range []gozzard.Action{
			gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload, gozzard.ActionKill,
			gozzard.ActionHost,
			gozzard.ActionUnhost, gozzard.ActionRegister, gozzard.ActionUpdate,
		} {
			out := r.want(a, nil, gozzard.CodeNoDefinition, false)
			if out.Message != "no definition of gse:game_1 on this host: register it first" {
				t.Errorf("message %q", out.Message)
			}
		}

		for _, spec := range []string{"x", "[]", "null x", `{"policy":{"op_timeout":1e99}}`, `{"identity":7}`,
			strings.Repeat("[", 100_000)} {
			r.want(gozzard.ActionStart, []byte(spec), gozzard.CodeRefused, false)
		}

		r.want(gozzard.Action(77), definition(nil), gozzard.CodeUnknownAction, false)
	})
}

func TestHostileNumbers(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) {
			s.Policy = gozzard.Policy{Kind: 99, StartCheckSecs: -1 << 62, StopCheckSecs: -1, StartRetries: -5,
				StartInterval: 1 << 62, OpTimeout: 1 << 62}
		})
		r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true)
		r.end(supervise.Exit{})
		r.after(300 * time.Second)
		r.alive(1)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
	})
}

func TestOneShotMayEnd(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) {
			s.Policy.Kind, s.Control.Start = gozzard.KindOneShot,
				"exit-after 1s"
		})

		if out := r.want(gozzard.ActionStart, spec, gozzard.CodeOK, true); out.Message != "the process exited with 0" {
			t.Errorf("message %q", out.Message)
		}

		long := definition(func(s *gozzard.Spec) {
			s.Policy.Kind, s.Control.Start = gozzard.KindOneShot,
				"exit-after 10s"
		})

		r.want(gozzard.ActionStart, long, gozzard.CodeOK, true)
		r.after(time.Hour)
		r.alive(0)

		if n := r.machine.Starts(game); n != 2 {
			t.Errorf("%d starts", n)
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeNotRunning, true) // nothing waits for a pull-up: the flag stays
	})
}

func TestQuery(t *testing.T) {
	bubble(t, func(r *rig) {
		if out := r.do(gozzard.ActionQuery, nil); out.Code != gozzard.CodeOK || out.Detail == nil ||
			out.Detail.PID != -1 {
			t.Errorf("query of the unknown: %+v", out)
		}

		if out := r.do(gozzard.ActionQuery, []byte("x")); out.Code != gozzard.CodeOK || out.Detail == nil ||
			out.Detail.PID != -1 {
			t.Errorf("query with a broken definition: %+v", out)
		}

		p := r.machine.Launch(game)
		if out := r.do(gozzard.ActionQuery, definition(nil)); out.Detail.PID != p.PID || out.Detail.Hosted ||
			out.Detail.MemKB == 0 {
			t.Errorf("query of a stranger: %+v", out.Detail)
		}

		if r.s.Len() != 0 || len(r.journal) != 0 {
			t.Error("a query registered something")
		}

		r.end(supervise.Exit{})
		began := time.Now()
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.after(time.Minute)
		d := r.do(gozzard.ActionQuery, nil).Detail
		if d.PID <= 1 || !d.Hosted || d.Version != "1.0" || d.LastStart != began.Unix() ||
			d.RegisteredAt != began.Unix() || d.ReportedAt != time.Now().Unix() || d.CPU == 0 {
			t.Errorf("detail %+v", d)
		}
	})
}

func TestQueryDoesNotWaitForAnOperation(t *testing.T) {
	bubble(t, func(r *rig) {
		done := r.apply(gozzard.ActionStart, game, start("sleep 30s"))
		r.after(time.Second)
		began := time.Now()
		if out := r.do(gozzard.ActionQuery, nil); out.Code != gozzard.CodeOK || time.Since(began) > 0 {
			t.Errorf("query waited %s: %+v", time.Since(began), out)
		}
		if out := <-done; out.Code != gozzard.CodeOK {
			t.Errorf("start: %+v", out)
		}
	})
}

func TestOperationsOfOneProcessAreSerial(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := definition(func(s *gozzard.Spec) { s.Control.Start = "sleep 1s"; s.Control.Stop = "sleep 1s" })
		var order []gozzard.Action
		var all []<-chan gozzard.Outcome
		for _, a := range []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionStart,
			gozzard.ActionReload, gozzard.ActionKill} {
			done := make(chan gozzard.Outcome, 1)
			r.s.Apply(supervise.Op{Action: a, Key: game, Spec: spec,
				Begin: func() error { order = append(order, a); return nil },
				Done:  func(out gozzard.Outcome, _ *supervise.Record, _ bool) { done <- out }})
			all = append(all, done)
		}

		other := r.apply(gozzard.ActionStart, gozzard.Key{Namespace: "gse", Name: "other"}, definition(nil))
		began := time.Now()
		if out := <-other; out.Code != gozzard.CodeOK || time.Since(began) > 6*time.Second {
			t.Errorf("the other process waited %s: %+v", time.Since(began), out)
		}

		for i, done := range all {
			if out := <-done; out.Code != gozzard.CodeOK {
				t.Errorf("operation %d: %+v", i, out)
			}
		}

		if len(order) != 5 || order[0] != gozzard.ActionStart || order[4] != gozzard.ActionKill ||
			r.machine.Peak(game) != 1 {
			t.Errorf("order %v, peak %d", order, r.machine.Peak(game))
		}
	})
}

func TestBeginRefuses(t *testing.T) {
	bubble(t, func(r *rig) {
		r.s.Apply(supervise.Op{Action: gozzard.ActionStart, Key: game, Spec: definition(nil),
			Begin: func() error { return errCancelled },
			Done:  func(gozzard.Outcome, *supervise.Record, bool) { t.Error("done was called") }})
		r.after(time.Minute)
		r.alive(0)
		if r.s.Len() != 0 || r.machine.Commands(game, gozzard.ActionStart) != 0 {
			t.Error("a cancelled operation left something behind")
		}
	})
}

func TestDoneComesBeforeChanged(t *testing.T) {
	bubble(t, func(r *rig) {
		done := make(chan struct{})
		r.s.Apply(supervise.Op{Action: gozzard.ActionHost, Key: game, Spec: definition(nil),
			Begin: func() error { return nil },
			Done: func(_ gozzard.Outcome, rec *supervise.Record, _ bool) {
				if rec == nil || !rec.Hosted {
					t.Errorf("record %+v", rec)
				}
				if len(r.changed()) != 0 || r.machine.Starts(game) != 0 {
					t.Error("something was reported or done before the record was durable")
				}
				time.Sleep(time.Second) // a slow disk
				close(done)
			}})

		<-done
		r.after(time.Second)

		if len(r.changed()) == 0 || r.machine.Starts(game) != 1 {
			t.Error("nothing followed")
		}
	})
}

// panicky panics where a test asks for it.
type panicky struct {
	*sim.Host
	run, find, sample atomic.Bool
}

func (p *panicky) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	if p.run.Load() {
		panic("run")
	}
	return p.Host.Run(ctx, r)
}

func (p *panicky) Find(q supervise.Query) (supervise.Found, error) {
	if p.find.Load() {
		panic("find")
	}
	return p.Host.Find(q)
}

func (p *panicky) Sample(procs []supervise.Proc) []supervise.Usage {
	if p.sample.Load() {
		panic("sample")
	}
	return p.Host.Sample(procs)
}

func TestPanicsAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *panicky
		r := newRig(t, func(h *sim.Host) supervise.Host { p = &panicky{Host: h}; return p })
		r.up()
		defer r.down()
		p.run.Store(true)

		if out := r.want(gozzard.ActionStart, definition(nil), gozzard.CodeCommandFailed,
			false); out.Message != "internal error" {
			t.Errorf("message %q", out.Message)
		}

		p.run.Store(false)
		p.find.Store(true)
		r.want(gozzard.ActionStop, nil, gozzard.CodeCommandFailed, false)

		if out := r.do(gozzard.ActionQuery, nil); out.Code != gozzard.CodeCommandFailed {
			t.Errorf("query: %+v", out)
		}

		r.after(time.Minute) // regular passes
		p.find.Store(false)
		r.want(gozzard.ActionStart, nil, gozzard.CodeOK, true)
		p.sample.Store(true)
		p.run.Store(true)
		r.end(supervise.Exit{})
		r.after(time.Hour) // pull-ups that panic back off as failed ones do
		p.sample.Store(false)
		p.run.Store(false)
		r.after(301 * time.Second)
		r.alive(1)

		r.s.Apply(supervise.Op{Action: gozzard.ActionReload, Key: game, Begin: func() error { return nil },
			Done: func(gozzard.Outcome, *supervise.Record, bool) { panic("done") }})

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
	})
}
