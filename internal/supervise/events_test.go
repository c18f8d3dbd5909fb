package supervise_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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

// by is the cause of an event that an operation of the rig caused.
func by(a gozzard.Action) gozzard.Cause {
	return gozzard.Cause{Op: gozzard.OpID{byte(a)}, Ref: gozzard.AttemptRef{Task: gozzard.TaskSeq(a)}}
}

// TestEventsNameTheirCause: what an operation causes names the operation. What happens by itself names none, also while
// an operation is in progress that has nothing to do with it.
func TestEventsNameTheirCause(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		if e := r.kinds(gozzard.EventStarted)[0]; e.Cause != by(gozzard.ActionStart) {
			t.Errorf("start: %+v", e)
		}

		r.after(2 * time.Minute)
		r.end(supervise.Exit{Known: true})
		r.after(10 * time.Second)
		es := r.kinds(gozzard.EventExited, gozzard.EventStarted, gozzard.EventRestarted)
		for _, e := range es {
			if !e.Cause.IsZero() {
				t.Errorf("it happened by itself: %+v", e)
			}
		}
		if code, known := es[0].ExitCode(); code != 0 || !known {
			t.Errorf("exit with 0: %+v", es[0])
		}

		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		if e := r.kinds(gozzard.EventExited)[0]; e.Cause != by(gozzard.ActionStop) {
			t.Errorf("stop: %+v", e)
		}
		r.want(gozzard.ActionUpdate, definition(nil), gozzard.CodeOK, false)
		r.kinds()
	})
}

// TestEventOfAFailedStart: a start that fails is an event with its reason.
func TestEventOfAFailedStart(t *testing.T) {
	bubble(t, func(r *rig) {
		out := r.do(gozzard.ActionStart, start("fail 3 no such config"))
		if out.Code == gozzard.CodeOK {
			t.Fatalf("%+v", out)
		}
		e := r.kinds(gozzard.EventStartFailed)[0]
		if !strings.Contains(e.Message, "no such config") || e.Cause != by(gozzard.ActionStart) {
			t.Errorf("%+v", e)
		}
		if _, known := e.ExitCode(); known {
			t.Errorf("a start that failed has an exit code: %+v", e)
		}
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

// TestTD18EventsOfACrashLoopAreMerged: a process that ends all the time has ten events of a kind in a minute and one more
// with the number of the others. Nothing is lost when the supervisor ends or the process is unregistered.
func TestTD18EventsOfACrashLoopAreMerged(t *testing.T) {
	loop := definition(func(s *gozzard.Spec) {
		s.Control.Start, s.Policy.StartCheckSecs, s.Policy.StartRetries, s.Policy.StartInterval = "exit-after 10ms", 0, 100_000, 0
	})
	exits := func(t *testing.T, r *rig) (single, merged int) {
		for _, e := range r.events() {
			var n int
			if e.Kind != gozzard.EventExited {
				continue
			}
			if _, err := fmt.Sscanf(e.Message, "%d events of this kind within a minute, the last: the process", &n); err == nil {
				merged += n
			} else {
				single++
			}
		}
		return single, merged
	}

	bubble(t, func(r *rig) {
		r.want(gozzard.ActionHost, loop, gozzard.CodeOK, true)
		r.after(61 * time.Second)
		single, merged := exits(t, r)
		if single < 10 || single > 12 || merged < 40 || single+merged > 70 {
			t.Errorf("%d single exits and %d merged ones in a minute", single, merged)
		}

		// What is still counted is reported when the process goes.
		r.after(30 * time.Second)
		r.want(gozzard.ActionUnhost, nil, gozzard.CodeOK, false)
		starts := r.machine.Starts(game)
		r.want(gozzard.ActionUnregister, nil, gozzard.CodeOK, false)
		more, moreMerged := exits(t, r)
		if total := single + merged + more + moreMerged; total < starts-1 || total > starts {
			t.Errorf("%d starts and %d exits", starts, total)
		}
	})

	// What is still counted is reported when the supervisor ends.
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.up()
		r.want(gozzard.ActionHost, loop, gozzard.CodeOK, true)
		r.after(30 * time.Second)
		r.down()
		if _, merged := exits(t, r); merged < 10 {
			t.Errorf("%d merged exits", merged)
		}
	})
}

// TestTD18LinesOfACrashLoopAreFew: the log has ten equal lines a minute about one process, and the next one has the number
// of those that were left out.
func TestTD18LinesOfACrashLoopAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := supervise.FewLines(slog.New(slog.NewTextHandler(&out, nil))).With("proc", "loop")
		for range 100 {
			log.Info("down")
		}
		log.Info("other")
		time.Sleep(time.Minute)
		log.Info("down")
		log.Info("down")

		if n := strings.Count(out.String(), "msg=down"); n != 12 {
			t.Errorf("%d lines", n)
		}
		if strings.Count(out.String(), "not_logged=90") != 1 || strings.Count(out.String(), "msg=other") != 1 {
			t.Error(out.String())
		}
	})
}
