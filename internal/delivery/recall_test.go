package delivery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/delivery"
)

// open are the open attempts as the record has them, in the order of their tasks.
func (w *world) open() (list []gozzard.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.rows {
		if !a.State.Final() {
			list = append(list, *a)
		}
	}
	slices.SortFunc(list, func(a, b gozzard.Attempt) int { return int(a.Ref.Index - b.Ref.Index) })
	return list
}

// setFails makes the record fail, or not.
func (w *world) setFails(fails bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = fails
}

// recalled checks that an attempt has the verdict of one that was cancelled.
func (w *world) recalled(op gozzard.OpID) {
	w.t.Helper()
	state := w.state(op)
	w.mu.Lock()
	defer w.mu.Unlock()
	if state != gozzard.AttemptNotExecuted || w.rows[op].Outcome != delivery.Cancelled {
		w.t.Errorf("it is %v, %+v", state, w.rows[op].Outcome)
	}
}

// isSent reports whether an operation was ever sent.
func (w *world) isSent(op gozzard.OpID) bool {
	return slices.ContainsFunc(w.commands(gozzard.CommandOperate), func(c command) bool {
		return slices.ContainsFunc(c.Ops, func(o gozzard.Op) bool { return o.ID == op })
	})
}

// What waits for a host is cancelled, and not sent when the host comes back.
func TestRecallWaiting(t *testing.T) {
	inWorld(t, 10, func(w *world) {
		op := w.launch(time.Minute, "a")[0].Op
		if r := w.Recall(t.Context(), w.open()); len(r.Elsewhere)+len(r.Sent) > 0 {
			t.Errorf("%+v", r)
		}
		w.recalled(op)
		w.Await(t.Context(), 1)

		w.connect("a", 1)
		w.heartbeats("a", 1, 20*time.Second)
		if w.isSent(op) {
			t.Error("it was sent")
		}
	})
}

// What waits in the queue is cancelled, and what was sent runs on and gets its true verdict.
func TestRecallQueued(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		agents := []gozzard.AgentID{"a", "b", "c", "d", "e"}
		for _, id := range agents {
			w.connect(id, 1)
		}
		list := w.launch(0, agents...)
		sent := map[gozzard.OpID]bool{}
		for _, c := range w.commands(gozzard.CommandOperate) {
			sent[c.Ops[0].ID] = true
		}

		r := w.Recall(t.Context(), w.open())
		if len(r.Elsewhere) > 0 || len(r.Sent) != 2 || len(sent) != 2 {
			t.Fatalf("%d sent, %+v", len(sent), r)
		}
		for _, a := range list {
			if sent[a.Op] != (r.Sent[a.Op] == 1) {
				t.Errorf("%v was sent: %v, and counts as sent in session %d", a.Agent, sent[a.Op], r.Sent[a.Op])
			}
			if !sent[a.Op] {
				w.recalled(a.Op)
				continue
			}
			w.report(a.Agent, 1, a.Op, gozzard.PhaseDone)
			if s := w.state(a.Op); s != gozzard.AttemptOK {
				t.Errorf("what was sent is %v", s)
			}
		}

		w.Await(t.Context(), 1)
		time.Sleep(20 * time.Second)
		for _, a := range list {
			if !sent[a.Op] && w.isSent(a.Op) {
				t.Errorf("%v was sent after it was cancelled", a.Agent)
			}
		}
	})
}

// While the record does not take the verdict, what was taken out of the queue is not sent. The verdict follows.
func TestRecallWhileTheRecordFails(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.connect("a", 1)
		w.connect("b", 1)
		list := w.launch(0, "a", "b")
		w.commands(gozzard.CommandOperate) // the first one is sent
		w.setFails(true)
		w.Recall(t.Context(), w.open())
		w.report("a", 1, list[0].Op, gozzard.PhaseBegun) // the window has room
		w.heartbeats("b", 1, 3*time.Second)
		if s := w.state(list[1].Op); s != gozzard.AttemptDispatched || w.isSent(list[1].Op) {
			t.Errorf("it is %v, sent: %v", s, w.isSent(list[1].Op))
		}
		if r := w.Recall(t.Context(), w.open()[1:]); len(r.Elsewhere)+len(r.Sent) > 0 {
			t.Errorf("%+v", r)
		}

		w.setFails(false)
		w.heartbeats("b", 1, 3*time.Second)
		w.recalled(list[1].Op)
		if w.isSent(list[1].Op) {
			t.Error("it was sent")
		}
	})
}

// What an earlier run of the server recorded as dispatched may have been sent: its verdict is the next contact. It is not
// sent again, though without the cancel it would be.
func TestRecallStale(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		inWorld(t, 10, func(w *world) {
			a := gozzard.Attempt{Op: gozzard.NewOpID(), Ref: gozzard.AttemptRef{Task: 1}, Agent: "a", State: gozzard.AttemptDispatched,
				Session: 1, Key: gozzard.Key{Namespace: "ns", Name: "p"}, Action: gozzard.ActionReload, Deadline: time.Now().Add(time.Minute)}
			row := a
			w.rows[a.Op] = &row
			w.Restore([]gozzard.Attempt{a}, map[gozzard.TaskSeq]string{1: "app"})
			if cancel {
				w.Recall(t.Context(), w.open())
				if s := w.state(a.Op); s != gozzard.AttemptUnknown {
					t.Errorf("it is %v", s)
				}
			}
			w.connect("a", 2)
			if w.isSent(a.Op) == cancel {
				t.Errorf("cancelled: %v, sent: %v", cancel, w.isSent(a.Op))
			}
			if s := w.state(a.Op); cancel && s != gozzard.AttemptNotExecuted {
				t.Errorf("after the host is back it is %v", s)
			}
		})
	}
}

// What another server delivers is named, and nothing is done about it here.
func TestRecallElsewhere(t *testing.T) {
	inWorldWith(t, 10, true, func(w *world) {
		list := w.launch(time.Minute, "a", "b")
		w.LetGo("a", 1)
		row := list[1]
		row.State, row.Session = gozzard.AttemptDispatched, 7
		r := w.Recall(t.Context(), []gozzard.Attempt{list[0], row})
		if len(r.Elsewhere) != 2 || len(r.Sent) > 0 {
			t.Errorf("%+v", r)
		}
		if s := w.state(list[0].Op); s != gozzard.AttemptPending {
			t.Errorf("it is %v", s)
		}
	})
}
