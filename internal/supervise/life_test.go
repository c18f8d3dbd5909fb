package supervise_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// A life says since when a process is in its state, and how often it was restarted without a request.
func TestLives(t *testing.T) {
	bubble(t, func(r *rig) {
		life := func() supervise.Life {
			t.Helper()
			lives, total := r.s.Lives(10)
			if len(lives) != 1 || total != 1 || lives[0].Key != game {
				t.Fatalf("%+v of %d", lives, total)
			}
			return lives[0]
		}

		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		first := life()
		if first.Restarts != 0 || first.State != gozzard.StateRunning || first.Since != first.StartedAt ||
			first.Since == 0 {
			t.Fatalf("started: %+v", first)
		}

		for n := 1; n <= 3; n++ {
			r.after(2 * time.Minute)
			r.end(supervise.Exit{Known: true, Signal: "SIGKILL"})
			r.after(10 * time.Second)
			if l := life(); l.Restarts != uint32(n) || l.Since < first.Since+120 || l.PID == first.PID {
				t.Fatalf("brought back %d times: %+v", n, l)
			}
		}

		r.after(time.Minute)
		r.want(gozzard.ActionStart, nil, gozzard.CodeAlreadyRunning, true)
		if l := life(); l.Restarts != 3 {
			t.Fatalf("a start that found it running: %+v", l)
		}
		r.want(gozzard.ActionRestart, nil, gozzard.CodeOK, true)
		if l := life(); l.Restarts != 0 {
			t.Fatalf("restarted: %+v", l)
		}

		r.after(time.Minute)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		now := time.Now().Unix()
		r.after(time.Hour)

		if l := life(); l.State != gozzard.StateStopped || l.Since < now-60 || l.Since > now || l.Restarts != 0 {
			t.Fatalf("stopped at %d: %+v", now, l)
		}
		if lives, total := r.s.Lives(0); len(lives) != 0 || total != 1 {
			t.Fatalf("%d of %d", len(lives), total)
		}
	})
}
