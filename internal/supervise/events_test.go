package supervise_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

func TestEventsOfALife(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)

		if es := r.kinds(gozzard.EventStarted); es[0].PID != int(r.status().PID) || es[0].Message != "started" {
			t.Errorf("%+v", es)
		}

		r.after(2 * time.Minute)
		pid := int(r.status().PID)
		r.end(supervise.Exit{Known: true, Signal: "SIGSEGV", Core: true})
		r.after(10 * time.Second)
		es := r.kinds(gozzard.EventExited, gozzard.EventStarted, gozzard.EventRestarted)
		if e := es[0]; e.PID != pid || e.Code != -1 || e.Signal != "SIGSEGV" || !e.Core {
			t.Errorf("exit %+v", e)
		}
		if e := es[2]; e.Message != "restarted bash, which was not running" || e.PID != int(r.status().PID) {
			t.Errorf("restart %+v", e)
		}

		r.after(2 * time.Minute)
		r.end(supervise.Exit{Known: true, Code: 3})
		r.after(10 * time.Second)

		if e := r.kinds(gozzard.EventExited, gozzard.EventStarted, gozzard.EventRestarted)[0]; e.Code != 3 ||
			e.Signal != "" {
			t.Errorf("exit %+v", e)
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		r.kinds(gozzard.EventExited) // and nothing was waiting that could have been cancelled
		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false)
		r.kinds()
	})
}

func TestEventOfAFailingPullUp(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, start("fail 3 no such config"), gozzard.CodeOK, true)
		r.after(5 * time.Second)
		es := r.kinds(gozzard.EventRestartFailed, gozzard.EventRestartFailed) // at once, and once more
		if es[0].Message != "cannot restart bash, which was not running: no such config" {
			t.Errorf("%+v", es[0])
		}
	})
}

func TestEventOfACancelledPullUp(t *testing.T) {
	for _, a := range []gozzard.Action{gozzard.ActionStop, gozzard.ActionKill, gozzard.ActionUnhost,
		gozzard.ActionUnregister} {
		bubble(t, func(r *rig) {
			r.want(gozzard.ActionHost, start("fail 3 no"), gozzard.CodeOK, true)
			r.after(5 * time.Second)
			r.events()

			if out := r.do(a, nil); out.Code != gozzard.CodeOK {
				t.Fatalf("%s: %+v", a, out)
			}

			es := r.kinds(gozzard.EventRestartCancelled)
			if want := "cancelled the restart of bash because of the action " +
				a.String(); es[0].Message != want {
				t.Errorf("%q, want %q", es[0].Message, want)
			}

			r.after(time.Hour)
			r.kinds()
		})
	}
}

func TestEventsOfWhatWasFound(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionRegister, definition(nil), gozzard.CodeOK, false)
		r.machine.Launch(game)
		r.after(11 * time.Second)

		if es := r.kinds(gozzard.EventStarted); es[0].Message != "found running" {
			t.Errorf("%+v", es)
		}

		r.down() // an agent that comes and goes starts nothing
		r.up()
		r.after(time.Minute)
		r.kinds()
		r.machine.Launch(game) // while the process on record is alive, another one does not take its place
		r.after(11 * time.Second)
		r.do(gozzard.ActionQuery, nil)
		r.kinds()
		r.end(supervise.Exit{})
		r.machine.Launch(game) // a successor
		r.after(11 * time.Second)
		r.kinds(gozzard.EventExited, gozzard.EventStarted)
	})
}

func TestEventsAfterTheAgentCameBack(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.events()
		r.down()
		r.up()
		r.after(2 * time.Minute)
		r.kinds()
		r.end(supervise.Exit{Known: true, Signal: "SIGKILL"})
		r.after(10 * time.Second)
		r.kinds(gozzard.EventExited, gozzard.EventStarted, gozzard.EventRestarted)
	})
}
