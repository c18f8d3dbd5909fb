package agent_test

import (
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// The summary says whether the server answers, since when it does not, and what the agent manages meanwhile.
func TestStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()

		if s := r.a.Summary(); s.Open || !s.Heard.IsZero() || !s.Opened.IsZero() || s.Host.Agent != r.a.ID() ||
			s.Session != 0 {
			t.Fatalf("before the first session: %+v", s)
		}

		r.connect()
		began := time.Now()
		pass(time.Minute)
		s := r.a.Summary()
		if !s.Open || s.Session != 1 || s.Opened.After(began) || time.Since(s.Heard) > 10*time.Second ||
			s.Journal.LSN == 0 || s.Journal.ID == [16]byte{} {
			t.Fatalf("with a session: %+v", s)
		}

		r.a.Disconnected()
		cut := time.Now()
		pass(time.Hour)

		if s := r.a.Summary(); s.Open || s.Heard.After(cut) || cut.Sub(s.Heard) > 10*time.Second {
			t.Fatalf("an hour after it was cut: %+v", s)
		}

		r.set(func() { r.mute = true }) // connected, but the server says nothing
		r.connect()

		if s := r.a.Summary(); s.Open || s.Session != 2 || cut.Sub(s.Heard) > 10*time.Second || s.Heard.IsZero() {
			t.Fatalf("a session without an answer: %+v", s)
		}
		if lives, total := r.a.Lives(10); len(lives) != 0 || total != 0 {
			t.Fatalf("%+v, %d", lives, total)
		}
	})
}

// A request on the host waits neither for the disk nor for the main loop.
func TestStandingOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var slow atomic.Bool
		r.o.Sync = func(f *os.File) error {
			if slow.Load() {
				time.Sleep(40 * time.Second)
			}
			return f.Sync()
		}

		r.start()
		r.connect()
		slow.Store(true)
		r.do(r.op(gozzard.ActionStart, "ok"))
		began := time.Now()
		s := r.a.Summary()
		r.a.Lives(10)

		if !s.Open || time.Since(began) != 0 { // the clock of the bubble moves when a goroutine waits
			t.Errorf("%+v after %s", s, time.Since(began))
		}

		pass(3 * time.Minute)

		if lives, _ := r.a.Lives(10); len(lives) != 1 || lives[0].State != gozzard.StateRunning {
			t.Errorf("%+v", lives)
		}
	})
}
