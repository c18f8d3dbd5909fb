package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/history"
	"github.com/gozzard/gozzard/internal/supervise"
)

// keepHistory gives the next agent of the rig a store.
func (r *rig) keepHistory() {
	r.t.Helper()
	s, err := history.Open(history.Options{Dir: r.dir})
	must(r.t, err)
	r.o.History = s
}

// history asks the agent for the last part of a history.
func (r *rig) history(back time.Duration) *gozzard.History {
	r.t.Helper()
	r.forget()
	now := time.Now()
	r.a.Receive(&gozzard.Command{Version: 1, Kind: gozzard.CommandHistory, Session: r.session,
		History: &gozzard.HistoryQuery{ID: gozzard.NewOpID(), Key: key, From: now.Add(-back).Unix(), To: now.Unix(),
			Points: 1000}})
	synctest.Wait()
	got := r.taken(gozzard.ReportHistory)
	if len(got) != 1 {
		r.t.Fatalf("%d answers", len(got))
	}
	return got[0].History
}

// TestHistoryEndsWithALatePass: a pass that measured a process before it was unregistered, and hands that over afterwards,
// begins no new history.
func TestHistoryEndsWithALatePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.keepHistory()
		r.start()
		r.connect()
		defer func() { r.stop() }()
		r.hello()
		r.do(r.op(gozzard.ActionStart, "run"))
		pass(2 * time.Minute)
		r.do(r.op(gozzard.ActionUnregister, ""))
		pass(time.Second)

		for range 30 { // more than a block, which would be written
			r.a.KeepMeasured([]supervise.Measurement{{Key: key, Proc: supervise.Proc{PID: 7, Start: 7}, Usage: supervise.Usage{MemKB: 1}}})
			pass(10 * time.Second)
		}
		if list, err := os.ReadDir(filepath.Join(r.dir, "history")); err != nil || len(list) != 0 {
			t.Errorf("%d files are left, %v", len(list), err)
		}
	})
}

// TestHistoryIsKept: the agent keeps what it measures, over its restart, until the process is unregistered.
func TestHistoryIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.keepHistory()
		r.start()
		r.connect()
		defer func() { r.stop() }()
		if !r.hello().Hello.Host.History {
			t.Error("the agent does not say that it keeps histories")
		}

		// An unknown process has none.
		if h := r.history(time.Hour); h.Error == "" {
			t.Error("an unknown process has a history")
		}

		// Run for a while, with a restart of the agent.
		r.do(r.op(gozzard.ActionStart, "run"))
		pass(10 * time.Minute)
		r.stop()
		r.keepHistory()
		r.start()
		r.connect()
		pass(2 * time.Minute)

		measured := 0
		h := r.history(12 * time.Minute)
		for _, p := range h.Points {
			if p.Mem == 4<<20 && p.FD == 8 && p.Restarts == 0 {
				measured++
			}
		}
		if measured < 70 || h.Step != 10 {
			t.Errorf("%d of %d steps of %d s are measured", measured, len(h.Points), h.Step)
		}

		// Unregister.
		r.do(r.op(gozzard.ActionUnregister, ""))
		pass(time.Second)
		if h := r.history(time.Hour); h.Error == "" {
			t.Error("an unregistered process has a history")
		}
		list, err := os.ReadDir(filepath.Join(r.dir, "history"))
		if err != nil || len(list) != 0 {
			t.Errorf("%d files are left, %v", len(list), err)
		}
	})
}
