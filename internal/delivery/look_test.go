package delivery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// change changes a row as another server does.
func (w *world) change(op gozzard.OpID, state gozzard.AttemptState, session uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[op].State, w.rows[op].Session = state, session
}

// cancelled reports whether the agents were asked to cancel an operation.
func (w *world) cancelled(op gozzard.OpID) bool {
	return slices.ContainsFunc(w.commands(gozzard.CommandCancel), func(c command) bool {
		return slices.Contains(c.Cancel, op)
	})
}

// A write that the record does not take shows that another server changed the attempt: the engine looks, and goes on from
// there.
func TestLookAfterWriteNotTaken(t *testing.T) {
	inWorldWith(t, 16, true, func(w *world) {
		w.connect("a", 1)
		w.connect("b", 1)
		list := w.launch(0, "a", "b")

		// Another server has no more patience with a, and has recorded the verdict of b.
		w.change(list[0].Op, gozzard.AttemptUnknown, 1)
		w.change(list[1].Op, gozzard.AttemptOK, 1)
		for range 15 { // until the deadline
			time.Sleep(time.Second)
			w.Heard("a", 1, time.Now())
			w.Heard("b", 1, time.Now())
		}
		if !w.cancelled(list[0].Op) {
			t.Error("an operation that another server gave up was not cancelled")
		}
		if held := w.Held(); held[list[1].Op] {
			t.Error("an operation with a verdict is still held")
		}
	})
}

// An attempt that this server holds for an agent without a home is forgotten when another server goes on with it.
func TestLookForgetsWhatMovedOn(t *testing.T) {
	inWorldWith(t, 16, true, func(w *world) {
		w.connect("a", 1)
		list := w.launch(0, "a")
		w.LetGo("a", 2)
		row := *w.rows[list[0].Op]
		w.Restore([]gozzard.Attempt{row}, map[gozzard.TaskSeq]string{row.Ref.Task: "app"})

		w.change(row.Op, gozzard.AttemptDispatched, 2)
		time.Sleep(15 * time.Second)
		if held := w.Held(); held[row.Op] || w.state(row.Op) != gozzard.AttemptDispatched {
			t.Errorf("held %v, %v", held, w.state(row.Op))
		}
	})
}

// A server that finds a newer session of an agent in the record is its home no longer.
func TestLookLeaves(t *testing.T) {
	inWorldWith(t, 16, true, func(w *world) {
		w.connect("a", 1)
		list := w.launch(0, "a")
		w.mu.Lock()
		w.elsewhere["a"] = 2
		w.mu.Unlock()
		w.Doubt("a")
		time.Sleep(2 * time.Second)
		s, online, _ := w.Session("a")
		if held := w.Held(); s.ID != 0 || online || len(held) > 0 {
			t.Errorf("session %d, online %v, held %v", s.ID, online, held)
		}
		if s := w.state(list[0].Op); s != gozzard.AttemptDispatched {
			t.Errorf("the attempt is %v", s)
		}
	})
}

// Before HELLO has decided, an attempt of an older session may be one that the agent executed: a look leaves it alone. After
// that it was recorded too late, and is sent again.
func TestLookWaitsForHello(t *testing.T) {
	inWorldWith(t, 16, true, func(w *world) {
		old := gozzard.Attempt{Op: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: 1}, Agent: "a",
			Key: gozzard.Key{Namespace: "ns", Name: "p"}, Action: gozzard.ActionReload,
			State: gozzard.AttemptDispatched, Session: 1, Deadline: time.Now().Add(time.Minute)}
		row := old
		w.mu.Lock()
		w.rows[old.Op] = &row
		w.mu.Unlock()

		w.OpenSession("a", delivery.Session{ID: 2}, time.Now())
		w.Doubt("a")
		time.Sleep(5 * time.Second)
		if s := w.state(old.Op); s != gozzard.AttemptDispatched || row.Session != 1 {
			t.Fatalf("before HELLO has decided: %v in session %d", s, row.Session)
		}

		// HELLO decides, with an agent that works on it; then a former home records another one.
		err := w.Reconcile(t.Context(), delivery.Hello{Agent: "a", Session: 2, JournalSince: 1,
			Open: []gozzard.OpReport{{ID: old.Op, Ref: old.Ref, Phase: gozzard.PhaseBegun}}})
		if err != nil {
			t.Fatal(err)
		}
		late := old
		late.Op, late.Ref = gozzard.NewOpID(), gozzard.AttemptRef{Task: 2}
		lateRow := late
		w.mu.Lock()
		w.rows[late.Op] = &lateRow
		w.mu.Unlock()
		w.Doubt("a")
		time.Sleep(2 * time.Second)
		if w.state(old.Op); row.Session != 1 {
			t.Errorf("what the agent works on is in session %d", row.Session)
		}
		if s := w.state(late.Op); s != gozzard.AttemptDispatched || lateRow.Session != 2 {
			t.Errorf("what came too late is %v in session %d", s, lateRow.Session)
		}
	})
}
