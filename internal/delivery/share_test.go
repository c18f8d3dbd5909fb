package delivery_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
)

// TD2: while a large task of one app uses up the window, and its verdicts wait for a slow record, a small task of another
// app is sent at once, and its verdict is in the next write.
func TestTD2SmallTaskBesideALargeOne(t *testing.T) {
	inWorld(t, 64, func(w *world) {
		var agents []gozzard.AgentID
		for i := range 3000 {
			agents = append(agents, gozzard.AgentID(fmt.Sprint("agent-", i)))
			w.connect(agents[i], 1)
		}
		large := w.launch(0, agents...)
		if n := len(w.commands(gozzard.CommandOperate)); n != 64 {
			t.Fatalf("%d operations of the large task were sent at once", n)
		}

		// The small task is sent, and no more than a few of the same app.
		w.app = "other"
		small := w.launch(0, agents[:20]...)
		if n := len(w.commands(gozzard.CommandOperate)) - 64; n != 8 {
			t.Fatalf("%d operations of the other app were sent", n)
		}
		synctest.Wait()

		// The record is busy with one verdict while many more arrive, at last one of the small task.
		w.mu.Lock()
		w.slow = make(chan struct{})
		w.mu.Unlock()
		w.report(agents[0], 1, large[0].Op, gozzard.PhaseDone)
		synctest.Wait()
		for i, id := range agents[1:] {
			w.report(id, 1, large[i+1].Op, gozzard.PhaseDone)
		}
		w.report(agents[0], 1, small[0].Op, gozzard.PhaseDone)
		synctest.Wait()

		// The write after that one has it, and not more than a part of the others.
		w.slow <- struct{}{}
		synctest.Wait()
		w.slow <- struct{}{}
		time.Sleep(time.Millisecond)
		if s := w.state(small[0].Op); s != gozzard.AttemptOK {
			t.Errorf("after the next write the small task is %v", s)
		}
		w.mu.Lock()
		n := w.rowsN
		w.mu.Unlock()
		if n > 1000 {
			t.Errorf("the next write has %d verdicts", n)
		}
		close(w.slow)
	})
}
