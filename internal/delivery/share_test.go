package delivery_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// busyRecord has a large task of one app that uses up the window, and whose first verdict is in a write that takes long.
// Many more wait behind it. Then it launches a small task of another app, on processes of a namespace.
func busyRecord(w *world, space string) (large, small []gozzard.Attempt) {
	w.t.Helper()
	var agents []gozzard.AgentID
	for i := range 3000 {
		agents = append(agents, gozzard.AgentID(fmt.Sprint("agent-", i)))
		w.connect(agents[i], 1)
	}
	large = w.launch(0, agents...)
	if n := len(w.commands(gozzard.CommandOperate)); n != 64 {
		w.t.Fatalf("%d operations of the large task were sent at once", n)
	}

	// The small task is sent, and no more than a few of the same app.
	w.app, w.space = "other", space
	small = w.launch(0, agents[:20]...)
	if n := len(w.commands(gozzard.CommandOperate)) - 64; n != 8 {
		w.t.Fatalf("%d operations of the other app were sent", n)
	}

	w.mu.Lock()
	w.slow, w.quick = make(chan struct{}), "other"
	w.mu.Unlock()
	for i, id := range agents {
		w.report(id, 1, large[i].Op, gozzard.PhaseDone)
		if i == 0 {
			synctest.Wait()
		}
	}
	return large, small
}

// TD2: while a large task of one app uses up the window, and its verdicts wait for a slow record, a small task of another
// app is sent at once, and its verdict has a write of its own.
func TestTD2SmallTaskBesideALargeOne(t *testing.T) {
	inWorld(t, 64, func(w *world) {
		large, small := busyRecord(w, "other")
		w.report(small[0].Agent, 1, small[0].Op, gozzard.PhaseDone)
		if s := w.state(small[0].Op); s != gozzard.AttemptOK {
			t.Errorf("behind the verdicts of the large task the small one is %v", s)
		}
		if s := w.state(large[0].Op); s.Final() {
			t.Fatalf("the large task is %v, so it did not delay anything", s)
		}

		// The next write has not more than a part of the others.
		w.slow <- struct{}{}
		synctest.Wait()
		w.slow <- struct{}{}
		synctest.Wait()
		w.mu.Lock()
		n := w.rowsN
		w.mu.Unlock()
		if n > 1000 {
			t.Errorf("the first writes have %d verdicts", n)
		}
		close(w.slow)
	})
}

// Verdicts about one process are recorded in the order of the reports, also when they are of several apps: the last one
// says what is wanted of the process.
func TestVerdictsOfAProcessKeepTheirOrder(t *testing.T) {
	inWorld(t, 64, func(w *world) {
		// One verdict of the large task is being written, the other one waits.
		large, small := busyRecord(w, "")
		for _, i := range []int{0, 5} {
			w.report(small[i].Agent, 1, small[i].Op, gozzard.PhaseDone)
			if s := w.state(small[i].Op); s.Final() {
				t.Errorf("%d: the second verdict is %v before the first is recorded", i, s)
			}
		}

		close(w.slow)
		time.Sleep(time.Second)
		w.mu.Lock()
		order := w.order
		w.mu.Unlock()
		for _, i := range []int{0, 5} {
			first, second := slices.Index(order, large[i].Op), slices.Index(order, small[i].Op)
			if first < 0 || second < first {
				t.Errorf("%d: the verdicts were recorded as rows %d and %d", i, first, second)
			}
		}

		// Nothing is left of it: the next verdict about the process is recorded as any other.
		again := w.launch(0, small[0].Agent)
		w.report(small[0].Agent, 1, again[0].Op, gozzard.PhaseDone)
		time.Sleep(time.Second) // a write after a large one waits for more
		if s := w.state(again[0].Op); s != gozzard.AttemptOK {
			t.Errorf("the next verdict is %v", s)
		}
	})
}
