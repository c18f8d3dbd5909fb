package supervise_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

func goroutines() int { return runtime.NumGoroutine() }

func TestRestoreFindsWhatRuns(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		pid, started := r.status().PID, r.status().StartedAt
		r.down()
		r.after(time.Hour)
		r.alive(1)
		r.up()
		r.after(time.Second)

		if st := r.status(); st.PID != pid || st.State != gozzard.StateRunning || !st.Hosted || st.Version != "1.0" ||
			st.FD == 0 || st.StartedAt != started {
			t.Errorf("status %#v", st)
		}

		if r.machine.Starts(game) != 1 {
			t.Error("started again")
		}

		r.end(supervise.Exit{})
		r.alive(1)
	})
}

func TestRestorePullsUpWhatDied(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		r.down()
		r.machine.Reboot()
		r.up()
		r.after(time.Second)
		r.alive(1)
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)
		r.down()
		r.up()
		r.after(time.Hour)
		r.alive(0)

		if st := r.status(); st.State != gozzard.StateStopped || st.Wanted != gozzard.StateStopped {
			t.Errorf("status %#v", st)
		}
	})
}

// TestStartInProgressIsOnRecord: as long as a start is in progress, the process before is not on record as the main
// process. An agent that dies meanwhile would take the new process for something that the one before left behind.
func TestStartInProgressIsOnRecord(t *testing.T) {
	bubble(t, func(r *rig) {
		onRecord := func() supervise.Held {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.held[game]
		}
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		first := onRecord()
		if !first.Settled {
			t.Fatalf("after a start: %+v", first)
		}
		r.want(gozzard.ActionStop, nil, gozzard.CodeOK, false)

		done := r.apply(gozzard.ActionStart, game, start("sleep 3s"))
		r.after(time.Second)
		if h := onRecord(); h.Proc != first.Proc || h.Settled {
			t.Errorf("while the command runs: %+v", h)
		}
		if out := <-done; out.Code != gozzard.CodeOK {
			t.Fatalf("start: %+v", out)
		}
		if h := onRecord(); h.Proc == first.Proc || !h.Settled {
			t.Errorf("after the second start: %+v", h)
		}
	})
}

func TestRestoreReportsEveryProcessOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		other := gozzard.Key{Namespace: "gse", Name: "other"}
		broken := gozzard.Key{Namespace: "gse", Name: "broken"}
		r.journal[game] = supervise.Record{Key: game, Spec: definition(nil), Wanted: gozzard.StateStopped}
		r.journal[other] = supervise.Record{Key: other, Spec: definition(nil), Wanted: gozzard.StateStopped,
			Labels: map[string]string{"a": "b"}}
		r.journal[broken] = supervise.Record{Key: broken, Spec: []byte("\x00"), Hosted: true,
			Wanted: gozzard.StateRunning}
		r.up()
		defer r.down()
		r.after(time.Second)
		reported := map[gozzard.Key]int{}
		for _, st := range r.changed() {
			reported[st.Key]++
			if st.Key == other && st.Labels["a"] != "b" {
				t.Errorf("labels %v", st.Labels)
			}
			if st.Key == broken && st.Message != "its definition cannot be read" {
				t.Errorf("message %q", st.Message)
			}
		}

		if len(reported) != 3 || reported[game] != 1 || reported[other] != 1 || reported[broken] != 1 {
			t.Errorf("reported %v", reported)
		}
		if out := <-r.apply(gozzard.ActionStart, broken, nil); out.Code != gozzard.CodeRefused {
			t.Errorf("start of a broken one: %+v", out)
		}
		if out := <-r.apply(gozzard.ActionUnhost, broken, nil); out.Code != gozzard.CodeOK ||
			string(r.journal[broken].Spec) != "\x00" {
			t.Errorf("unhost of a broken one: %+v", out)
		}

		if out := <-r.apply(gozzard.ActionStart, broken, definition(nil)); out.Code != gozzard.CodeOK {
			t.Errorf("start with a definition: %+v", out)
		}
	})
}

func TestGoingAwayGivesUpACommandWithoutKillingIt(t *testing.T) {
	bubble(t, func(r *rig) {
		done := r.apply(gozzard.ActionStart, game, start("sleep 10s"))
		waiting := r.apply(gozzard.ActionStop, game, nil)
		r.after(time.Second)
		began := time.Now()
		r.down()

		if time.Since(began) > 0 {
			t.Errorf("going away took %s", time.Since(began))
		}

		r.after(time.Minute)
		r.alive(1) // the command went on

		select {
		case out := <-done:
			t.Errorf("a verdict about an abandoned command: %+v", out)
		case out := <-waiting:
			t.Errorf("a verdict about an operation that was not begun: %+v", out)
		default:
		}

		r.up()
	})

	bubble(t, func(r *rig) { // in the middle of the checks
		r.want(gozzard.ActionStart, definition(func(s *gozzard.Spec) { s.Control.Stop = "nothing" }), gozzard.CodeOK,
			true)
		done := r.apply(gozzard.ActionStop, game, nil)
		r.after(time.Second)
		r.down()
		r.alive(1)
		if len(done) != 0 || !r.record().Hosted {
			t.Error("a stop that was given up was concluded")
		}
		r.up()
	})
}

func TestLeftOverStartCommandMakesNoSecondCopy(t *testing.T) {
	bubble(t, func(r *rig) {
		spec := start("sleep 10s")
		r.want(gozzard.ActionHost, spec, gozzard.CodeOK, true)
		r.after(5 * time.Second) // start_cmd of the pull-up is at it
		r.down()
		r.up()
		r.after(time.Hour)
		r.alive(1)
		if r.machine.Peak(game) != 1 {
			t.Error("two copies")
		}
	})
}

func TestApplyAroundRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		r.s = supervise.New(supervise.Options{Host: r.machine})
		done := r.apply(gozzard.ActionRegister, game, definition(nil)) // before Run: waits for it
		synctest.Wait()

		if len(done) != 0 {
			t.Error("done before Run")
		}

		ended := make(chan error, 1)
		go func() { ended <- r.s.Run(ctx) }()

		if out := <-done; out.Code != gozzard.CodeOK {
			t.Errorf("%+v", out)
		}
		if err := r.s.Run(ctx); err == nil {
			t.Error("ran twice")
		}

		cancel()

		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}

		late := r.apply(gozzard.ActionStart, game, nil)
		r.after(time.Minute)

		if len(late) != 0 || r.machine.Starts(game) != 0 {
			t.Error("something happened after the end")
		}
	})
}

// TestCountRunning checks that processes are counted by looking for them, also if what is on record seems to be of an
// earlier boot: in a container a unit may see another boot id than a shell.
func TestCountRunning(t *testing.T) {
	bubble(t, func(r *rig) {
		other := gozzard.Key{Namespace: "gse", Name: "other"}
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		if out := <-r.apply(gozzard.ActionRegister, other, definition(nil)); out.Code != gozzard.CodeOK {
			t.Fatal(out)
		}
		r.down()
		r.mu.Lock()
		recs, held := slices.Collect(maps.Values(r.journal)), maps.Clone(r.held)
		r.mu.Unlock()

		for _, boot := range []string{r.boot, "seen by the unit"} {
			h := held[game]
			h.BootID = boot
			host := &onRecord{Host: r.machine}
			s := supervise.New(supervise.Options{Host: host, Boot: r.boot})
			s.Restore(recs, map[gozzard.Key]supervise.Held{game: h})
			if n, err := s.CountRunning(); n != 1 || err != nil || host.foreign {
				t.Errorf("boot %s: %d, %v, asked with a record of another boot: %v", boot, n, err, host.foreign)
			}
		}
		r.up()
	})
}

// onRecord is a machine that notices a query with a record of another boot: such a query takes what runs for what an ended
// process left behind.
type onRecord struct {
	*sim.Host
	foreign bool
}

func (h *onRecord) Find(q supervise.Query) (supervise.Found, error) {
	h.foreign = h.foreign || q.Held.BootID == "seen by the unit"
	return h.Host.Find(q)
}

// An agent that starts again shows what is on record and alive before it has looked: its first report must be true.
func TestFirstStatusAfterRestoreIsTrue(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(gozzard.ActionStart, definition(nil), gozzard.CodeOK, true)
		pid := r.status().PID
		r.down()

		r.mu.Lock()
		recs, held := slices.Collect(maps.Values(r.journal)), maps.Clone(r.held)
		r.mu.Unlock()
		s := supervise.New(supervise.Options{Host: r.host})
		s.Restore(recs, held)
		if st, _ := s.Status(game); st.State != gozzard.StateRunning || st.PID != pid {
			t.Errorf("%#v, pid was %d", st, pid)
		}

		r.up()
		r.after(time.Second)
		if st := r.status(); st.State != gozzard.StateRunning || st.PID != pid {
			t.Errorf("after the first look: %#v, pid was %d", st, pid)
		}
	})
}
