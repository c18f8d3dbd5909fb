package control_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

func TestOperationReachesVerdict(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	op := r.op(me, 1, task)
	if op.Action != gozzard.ActionStart || op.Key != key || op.Gen != uint64(task.Seq) || len(op.Spec) == 0 {
		t.Fatalf("%+v", op)
	}

	r.verdict(task, me, gozzard.AttemptDispatched, "")
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	r.until("not acknowledged", func() bool {
		for _, c := range r.commands(me, gozzard.CommandAck) {
			for _, id := range c.Acked {
				if id == op.ID {
					return true
				}
			}
		}
		return false
	})

	for rec, err := range r.store.Processes(t.Context(), nil) {
		if err != nil || !rec.Hosted || rec.Wanted != gozzard.StateRunning {
			t.Fatalf("%+v %v", rec, err)
		}
	}
}

func TestRepeatsUntilTheAgentHasIt(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionReload, 0, me)
	op := r.op(me, 1, task)
	r.until("no repeat", func() bool { return len(r.commands(me, gozzard.CommandOperate)) >= 3 })

	for _, c := range r.commands(me, gozzard.CommandOperate) {
		if len(c.Ops) != 1 || c.Ops[0].ID != op.ID {
			t.Fatalf("a repeat has another id: %+v", c)
		}
	}

	r.report(me, 1, gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseBegun})
	time.Sleep(100 * time.Millisecond) // a repeat that was under way
	n := len(r.commands(me, gozzard.CommandOperate))
	time.Sleep(400 * time.Millisecond) // eight times the pause between repeats

	if len(r.commands(me, gozzard.CommandOperate)) != n {
		t.Fatal("repeated though the agent is at it")
	}
}

func TestOfflineAndUnknownHosts(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)
	r.until("the lease does not end", func() bool {
		h, ok := r.plane.Resolve(caller, gozzard.Target{Agent: me})
		return ok && !h.Online
	})
	task := r.operate(gozzard.ActionStart, 0, me, other)
	r.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
	r.verdict(task, other, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
	if len(r.commands(me, gozzard.CommandOperate)) != 0 {
		t.Fatal("sent to an offline host")
	}
}

func TestWaitingForAHost(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)

	r.until("the lease does not end", func() bool {
		h, _ := r.plane.Resolve(caller, gozzard.Target{Agent: me})
		return !h.Online
	})

	expired := r.operate(gozzard.ActionReload, 50*time.Millisecond, me)
	r.verdict(expired, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
	start := r.operate(gozzard.ActionStart, time.Minute, me)
	reload := r.operate(gozzard.ActionReload, time.Minute, me)
	stop := r.operate(gozzard.ActionStop, time.Minute, me)
	r.hello(me, 2, journalA)
	r.verdict(start, me, gozzard.AttemptNotExecuted, gozzard.CodeSuperseded)

	for _, task := range []gozzard.Task{reload, stop} {
		op := r.op(me, 2, task)
		r.report(me, 2, done(op, gozzard.CodeOK))
		r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	}
}

func TestReconciliation(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase gozzard.Phase
		code  gozzard.Code
		pos   gozzard.JournalPos
		want  gozzard.AttemptState
		final gozzard.Code
	}{
		{"done", gozzard.PhaseDone, gozzard.CodeOK, journalA, gozzard.AttemptOK, gozzard.CodeOK},
		{"failed", gozzard.PhaseDone, gozzard.CodeCommandFailed, journalA, gozzard.AttemptFailed,
			gozzard.CodeCommandFailed},
		{"interrupted", gozzard.PhaseInterrupted, "", journalA, gozzard.AttemptInterrupted, gozzard.CodeInterrupted},
		{"never", gozzard.PhaseNever, "", journalA, gozzard.AttemptNotExecuted, gozzard.CodeExpired},
		{"absent in a new journal", gozzard.PhaseAbsent, "", journalB, gozzard.AttemptInterrupted,
			gozzard.CodeInterrupted},
		{"absent in a rolled-back journal", gozzard.PhaseAbsent, "", gozzard.JournalPos{ID: journalA.ID, LSN: 9},
			gozzard.AttemptInterrupted, gozzard.CodeInterrupted},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.hello(me, 1, journalA)
			task := r.operate(gozzard.ActionStart, 0, me)
			op := r.op(me, 1, task)
			var open []gozzard.OpReport
			if c.phase != gozzard.PhaseAbsent {
				open = []gozzard.OpReport{{ID: op.ID, Ref: op.Ref, Phase: c.phase,
					Outcome: gozzard.Outcome{Code: c.code}}}
			}
			r.hello(me, 2, c.pos, open...)
			r.verdict(task, me, c.want, c.final)
		})
	}

	t.Run("absent in the same journal is sent again", func(t *testing.T) {
		r := newRig(t)
		r.hello(me, 1, journalA)
		task := r.operate(gozzard.ActionStart, 0, me)
		op := r.op(me, 1, task)
		r.hello(me, 2, journalA)
		if again := r.op(me, 2, task); again.ID != op.ID {
			t.Fatal("sent again under another id")
		}
	})

	t.Run("an older session opens nothing", func(t *testing.T) {
		r := newRig(t)
		r.hello(me, 5, journalA)
		r.plane.Receive(me, 0, &gozzard.Report{Kind: gozzard.ReportHello, Session: 4, Journal: journalA,
			Hello: &gozzard.Hello{}})
		task := r.operate(gozzard.ActionStart, 0, me)
		r.op(me, 5, task)
	})
}

func TestServerRestart(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	sent := r.operate(gozzard.ActionStart, 0, me)
	op := r.op(me, 1, sent)
	r.stop()
	r.forget()
	r.start()
	r.heartbeat(me, 1)

	r.until("a session the server does not know is not greeted",
		func() bool { return len(r.commands(me, gozzard.CommandGreet)) > 0 })

	early := r.operate(gozzard.ActionReload, 0, me) // before the host is back: it waits a moment
	r.hello(me, 2, journalA, done(op, gozzard.CodeOK))
	r.verdict(sent, me, gozzard.AttemptOK, gozzard.CodeOK)
	late := r.op(me, 2, early)
	r.report(me, 2, done(late, gozzard.CodeOK))
	r.verdict(early, me, gozzard.AttemptOK, gozzard.CodeOK)
	res, err := r.plane.Await(t.Context(), caller, early.ID, time.Minute)
	if err != nil || res.Open() != 0 {
		t.Fatalf("%+v %v", res, err)
	}
}

func TestDisconnectedHostIsOfflineAtOnce(t *testing.T) {
	r := newRig(t)
	online := func() bool {
		list := r.plane.Hosts(caller)
		return len(list) == 1 && list[0].Online
	}
	r.hello(me, 1, journalA)
	r.until("the host is not online", online)

	r.plane.Disconnected(me)
	if online() {
		t.Error("the host is online after its connection was closed")
	}
	r.heartbeat(me, 1) // it was on its way
	if online() {
		t.Error("a heartbeat of the closed connection made the host online")
	}
	r.hello(me, 2, journalA)
	r.until("the host is not back", online)
}

func TestSilenceAndLateTruth(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	task := r.operate(gozzard.ActionStart, 0, me, other)
	op, op2 := r.op(me, 1, task), r.op(other, 1, task)
	r.report(other, 1, done(op2, gozzard.CodeOK))
	r.verdict(task, other, gozzard.AttemptOK, gozzard.CodeOK)
	r.verdict(task, me, gozzard.AttemptUnknown, gozzard.CodeUnreachable)
	r.heartbeat(me, 1) // it was only slow
	r.until("no cancel", func() bool { return len(r.commands(me, gozzard.CommandCancel)) > 0 })
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.report(me, 1, gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseInterrupted})
	time.Sleep(50 * time.Millisecond)
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
}

func TestForeignResultsAreRefused(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	task := r.operate(gozzard.ActionStart, 0, me)
	op := r.op(me, 1, task)
	r.report(other, 1, done(op, gozzard.CodeOK))
	forged := done(op, gozzard.CodeOK)
	forged.ID = gozzard.NewOpID()
	r.report(me, 1, forged)
	r.until("a foreign result is not refused", func() bool { _, ok := r.refused.Load("foreign_operation"); return ok })

	// The server takes the result for one of an old task and acknowledges it, after it has rejected the foreign one.
	r.until("a result of nothing is not forgotten", func() bool {
		for _, c := range r.commands(me, gozzard.CommandAck) {
			if slices.Contains(c.Acked, forged.ID) {
				return true
			}
		}
		return false
	})

	r.verdict(task, me, gozzard.AttemptDispatched, "")
}

func TestRegister(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionRegister, 0, me)
	op := r.op(me, 1, task)
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	if rows := r.plane.Status(caller, key, []gozzard.Target{{Agent: me}}); !rows[0].ProcKnown ||
		rows[0].Row.Status.State != gozzard.StateStopped {
		t.Fatalf("%+v", rows)
	}

	again := r.operate(gozzard.ActionRegister, 0, me)
	r.verdict(again, me, gozzard.AttemptNotExecuted, gozzard.CodeAlreadyRegistered)
	gone := r.operate(gozzard.ActionUnregister, 0, me)
	op = r.op(me, 1, gone)
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(gone, me, gozzard.AttemptOK, gozzard.CodeOK)

	// The live index follows the record: a reader may find the verdict a moment earlier.
	r.until("the process is still known", func() bool {
		return !r.plane.Status(caller, key, []gozzard.Target{{Agent: me}})[0].ProcKnown
	})
}

func TestAnotherAppsTaskDoesNotExist(t *testing.T) {
	r := newRig(t)
	task := r.operate(gozzard.ActionStart, 0, me)
	_, mine := r.plane.Results(t.Context(), gozzard.Caller{App: "other"}, task.ID)
	_, none := r.plane.Results(t.Context(), caller, "20200101000000:999999")
	if gozzard.KindOf(mine) != gozzard.ErrNotFound || mine.Error() != none.Error() {
		t.Fatalf("%v, %v", mine, none)
	}
}
