package control_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// TestV11LostRecord: the record is lost while agents have operations on record. The first operation in a
// session has a newer generation than all of them. An agent that makes a number up changes nothing for others.
func TestV11LostRecord(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	for range 5 {
		task := r.operate(gozzard.ActionReload, 0, me)
		op := r.op(me, 1, task)
		r.newestGen = op.Gen
		r.report(me, 1, done(op, gozzard.CodeOK))
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}

	r.stop()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(r.path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	r.forget()
	r.start()
	r.hello(me, 2, journalA)
	if op := r.op(me, 2, r.operate(gozzard.ActionStop, 0, me)); op.Gen != r.newestGen+1 {
		t.Errorf("the host has generation %d on record, the next operation has %d", r.newestGen, op.Gen)
	}

	last := r.newestGen + 1
	for session, made := range []uint64{1 << 52, 1 << 60, 1 << 62, 1<<62 + 1, math.MaxUint64} {
		r.newestGen = made
		r.hello(other, uint64(session)+1, journalB)
		task := r.operate(gozzard.ActionStop, 0, other)
		if op := r.op(other, uint64(session)+1, task); made <= gozzard.MaxGen && (op.Gen <= made || op.Gen > made+100) {
			t.Errorf("an agent that reports generation %d gets %d", made, op.Gen)
		}
		if task.Seq > 100 {
			t.Errorf("an agent that reports generation %d brought the number of tasks to %d", made, task.Seq)
		}
	}

	// The host beside it goes on with small numbers, also in a new session.
	r.newestGen = last
	r.hello(me, 3, journalA)
	if op := r.op(me, 3, r.operate(gozzard.ActionStop, 0, me)); op.Gen <= last || op.Gen > 100 {
		t.Errorf("a host gets generation %d after %d because of another host", op.Gen, last)
	}
}

// TestV11VerdictsOfAnOlderCopy: the record is put back from a copy of a running server. What was open in the copy was
// done since and is forgotten by the agent. It is not executed again, and its verdict does not say that it was not
// executed.
func TestV11VerdictsOfAnOlderCopy(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)
	sent := r.operate(gozzard.ActionReload, 0, me)
	first := r.op(me, 1, sent)
	r.until("the lease does not end", func() bool {
		h, _ := r.plane.Resolve(caller, gozzard.Target{Agent: me})
		return !h.Online
	})
	waiting := r.operate(gozzard.ActionReload, time.Hour, me)
	older := r.path + ".copy"
	if err := sqlstore.Copy(t.Context(), r.path, older); err != nil {
		t.Fatal(err)
	}

	// After the copy the agent does both, and a third one.
	r.hello(me, 2, journalA, done(first, gozzard.CodeOK))
	r.report(me, 2, done(r.op(me, 2, waiting), gozzard.CodeOK))
	third := r.operate(gozzard.ActionReload, 0, me)
	r.newestGen = r.op(me, 2, third).Gen
	r.report(me, 2, done(r.op(me, 2, third), gozzard.CodeOK))
	for _, task := range []gozzard.Task{sent, waiting, third} {
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}

	// The copy is put back.
	r.stop()
	if err := os.Rename(older, r.path); err != nil {
		t.Fatal(err)
	}
	r.forget()
	r.start()
	r.hello(me, 3, journalA)
	r.verdict(sent, me, gozzard.AttemptInterrupted, gozzard.CodeInterrupted)

	// What was waiting is sent. The agent rejects it as old, as it has a newer generation on record.
	op := r.op(me, 3, waiting)
	r.report(me, 3, gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseNever,
		Outcome: gozzard.Outcome{Code: gozzard.CodeSuperseded, Message: "not executed: too old"}})
	r.verdict(waiting, me, gozzard.AttemptInterrupted, gozzard.CodeInterrupted)

	// An operation of this server that is rejected was not executed.
	task := r.operate(gozzard.ActionReload, 0, me)
	next := r.op(me, 3, task)
	r.report(me, 3, gozzard.OpReport{ID: next.ID, Ref: next.Ref, Phase: gozzard.PhaseNever,
		Outcome: gozzard.Outcome{Code: gozzard.CodeSuperseded}})
	r.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeSuperseded)
}

// An agent that makes up the number of a session cannot bring it to its end: the next honest session is opened.
func TestTD23AbsurdSession(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	ip, err := gozzard.ParseIP("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []uint64{1 << 40, 1<<62 + 4000, math.MaxInt64, math.MaxUint64} {
		r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: session, Journal: journalB,
			Hello: &gozzard.Hello{Run: 7, Host: gozzard.HostInfo{Agent: me, Addrs: []gozzard.HostAddr{{IP: ip}}}}})
	}
	r.until("an absurd session is not rejected", func() bool {
		_, ok := r.refused.Load("absurd_session")
		return ok
	})
	r.hello(me, 2, journalA)
	r.op(me, 2, r.operate(gozzard.ActionReload, 0, me))
}
