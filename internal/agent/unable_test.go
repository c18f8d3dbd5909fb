package agent_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/agent"
)

// takeState puts a file in the place of the state folder, so that it cannot be made again. It returns where the folder
// is.
func (r *rig) takeState() string {
	r.t.Helper()
	moved := r.dir + "-moved"
	must(r.t, os.Rename(r.dir, moved))
	must(r.t, os.WriteFile(r.dir, nil, 0o600))
	return moved
}

// A20: no operation runs without a durable intent before the server knows that the journal is not complete. After that
// stop and kill run once, everything else is rejected, and a restart with the old file proves nothing.
func TestUnwritableState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		start := r.op(gozzard.ActionStart, "ok")
		r.do(start)
		pass(time.Second)
		before := r.hello()

		// The server does not answer, so it does not know: nothing may happen.
		r.set(func() { r.mute = true })
		moved := r.takeState()
		early := r.op(gozzard.ActionStop, "")
		r.do(early)
		pass(12 * time.Second)
		if n := r.host.Commands(key, gozzard.ActionStop); n != 0 {
			t.Fatalf("%d effects that neither the journal nor the server knows", n)
		}

		// The server answers: the session has another journal, and the host says why.
		r.set(func() { r.mute, r.noAcks = false, true })
		pass(10 * time.Second)
		now := r.hello()
		if now.Journal.ID == before.Journal.ID || !now.Hello.Kept ||
			!strings.HasPrefix(strings.Join(now.Hello.Host.Degraded, ""), gozzard.StateUnwritable) {
			t.Fatalf("HELLO %+v %+v", now.Journal, now.Hello)
		}
		for _, o := range now.Hello.Open {
			if o.ID == early.ID && o.Phase != gozzard.PhaseNever {
				t.Errorf("the stop that was given up is %s", o.Phase)
			}
		}

		// Stop runs, reload does not.
		reload, stop := r.op(gozzard.ActionReload, ""), r.op(gozzard.ActionStop, "")
		r.do(reload)
		pass(time.Second)
		r.do(stop)
		pass(5 * time.Second)
		if got := r.last(reload.ID); got.Phase != gozzard.PhaseNever || got.Outcome.Code != gozzard.CodeRefused {
			t.Errorf("reload: %+v", got)
		}
		got := r.last(stop.ID)
		if got.Outcome.Code != gozzard.CodeOK || !strings.Contains(got.Outcome.Message, "could not record this") ||
			r.host.Commands(key, gozzard.ActionStop) != 1 || r.host.Commands(key, gozzard.ActionReload) != 0 {
			t.Errorf("stop: %+v", got)
		}
		r.do(stop)
		pass(5 * time.Second)
		if n := r.host.Commands(key, gozzard.ActionStop); n != 1 {
			t.Errorf("the stop ran %d times", n)
		}

		// A crash now leaves the old file: the server must not conclude that the stop never began.
		crashed := newRig(t)
		must(t, copyDir(moved, crashed.dir))
		crashed.start()
		crashed.connect()
		hello := crashed.hello()
		since := gozzard.JournalSince(now.Journal, now.Session, hello.Journal, now.Session+1)
		next, ok := gozzard.Reconcile(gozzard.AttemptDispatched, now.Session, false, gozzard.Contact{
			Session: now.Session + 1, Phase: gozzard.PhaseAbsent,
			SameJournal: gozzard.SameJournal(now.Session, since),
		}, "")
		if !ok || next != gozzard.AttemptInterrupted {
			t.Errorf("after a crash the stop is %s", next)
		}

		// The folder comes back: everything is written, and a restart knows it.
		must(t, os.Remove(r.dir))
		must(t, os.Rename(moved, r.dir))
		pass(5 * time.Second)
		if s := r.a.Summary(); s.Fault != "" || len(s.Host.Degraded) > 0 || r.hello().Hello.Kept {
			t.Errorf("still %+v", s)
		}
		r.stop()
		r.start()
		r.connect()
		if open := r.hello(); open.Journal.ID != now.Journal.ID {
			t.Errorf("the file has journal %x, the agent used %x", open.Journal.ID, now.Journal.ID)
		}
		if lives, _ := r.a.Lives(10); len(lives) != 1 || lives[0].Wanted != gozzard.StateStopped {
			t.Errorf("after a restart: %+v", lives)
		}
	})
}

// A20: the agent notices a deleted folder although nothing happens, and makes it again with its identity.
func TestDeletedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := online(t)
		r.do(r.op(gozzard.ActionStart, "ok"))
		pass(time.Second)
		id, before := r.a.ID(), r.hello()
		must(t, os.RemoveAll(r.dir))
		pass(3 * time.Second)

		r.stop()
		r.start()
		r.connect()
		if r.a.ID() != id || r.hello().Journal.ID != before.Journal.ID {
			t.Errorf("the agent was %s and is %s", id, r.a.ID())
		}
		if lives, _ := r.a.Lives(10); len(lives) != 1 || lives[0].Wanted != gozzard.StateRunning {
			t.Errorf("after a restart: %+v", lives)
		}
	})
}

// An agent that could not record is not started on a folder that it cannot write.
func TestStartOnAFile(t *testing.T) {
	r := newRig(t)
	must(t, os.WriteFile(r.dir, nil, 0o600))
	if _, err := agent.New(agent.Options{Dir: r.dir, Host: r.host}); err == nil {
		t.Error("no error")
	}
}
