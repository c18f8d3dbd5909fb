package control_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// A host that lost its state gets its definitions from the record. Processes that were supervised are supervised again;
// of the others the agent knows the definition again.
func TestLostStateIsRestored(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	hosted := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, hosted), gozzard.CodeOK))
	r.verdict(hosted, me, gozzard.AttemptOK, gozzard.CodeOK)
	idle := gozzard.Key{Namespace: "gse", Name: "idle"}
	task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{
		{Action: gozzard.ActionRegister, Key: idle, Labels: map[string]string{"a": "b"}, Spec: spec(5),
			Targets: []gozzard.Target{{Agent: me, ResultKey: string(me)}}}}})
	if err != nil {
		t.Fatal(err)
	}

	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	r.hello(me, 2, journalA) // the same journal: nothing is to be done
	time.Sleep(200 * time.Millisecond)
	r.forget()
	r.hello(me, 3, journalB)
	got := r.restored(2)
	if op := got[key]; op.Action != gozzard.ActionHost || len(op.Spec) == 0 {
		t.Errorf("hosted: %+v", op)
	}
	if op := got[idle]; op.Action != gozzard.ActionUpdate || len(op.Spec) == 0 || op.Labels["a"] != "b" {
		t.Errorf("not hosted: %+v", op)
	}

	rows, err := r.store.Audit(t.Context(), 1)
	if err != nil || len(rows) != 1 || rows[0].Caller.App != "gozzard" || rows[0].Caller.User != "system" {
		t.Errorf("audit: %+v, %v", rows, err)
	}
}

// What a host lost is given back without a second person: one has approved it, or none was needed.
func TestLostStateNeedsNoSecondPerson(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.forget()
	r.hold.Store(true)
	r.hello(me, 2, journalB)
	r.restored(1)

	_, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{
		{Action: gozzard.ActionStop, Key: key, Targets: []gozzard.Target{{Agent: me}}}}})
	if gozzard.KindOf(err) != gozzard.ErrUserForbidden {
		t.Errorf("an operation of a caller: %v", err)
	}
}

// Operations that a caller requested in between are carried out first. The definitions that result are restored.
func TestWaitingOperationComesBeforeTheCopy(t *testing.T) {
	r := newRigWith(t, 600*time.Millisecond)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	r.until("the lease does not end", func() bool {
		h, _ := r.plane.Resolve(caller, gozzard.Target{Agent: me})
		return !h.Online
	})

	stop := r.operate(gozzard.ActionStop, time.Minute, me)
	r.forget()
	r.hello(me, 2, journalB)
	op := r.op(me, 2, stop)

	if n := len(r.restores()); n != 0 {
		t.Fatalf("%d restored while an operation is under way", n)
	}

	res := done(op, gozzard.CodeOK)
	res.Outcome.Hosted = false
	r.report(me, 2, res)
	r.verdict(stop, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.heartbeat(me, 2)

	if op := r.restored(1)[key]; op.Action != gozzard.ActionUpdate {
		t.Errorf("a stopped process came back: %+v", op)
	}
}

// An operation that was requested before a host came back, and is on its way into the record, counts as under way: a
// restored definition must not overtake it, because the host would then reject the operation as the older one.
func TestRestoreWaitsForWhatIsBeingAccepted(t *testing.T) {
	r, late := newLateRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.forget()
	late.slow = true

	var reload gozzard.Task
	var wg sync.WaitGroup
	wg.Go(func() { reload = r.operate(gozzard.ActionReload, time.Minute, me) })
	<-late.committed
	r.hello(me, 2, journalB)
	time.Sleep(300 * time.Millisecond)

	if n := len(r.restores()); n != 0 {
		t.Errorf("%d restored while an operation is being accepted", n)
	}

	close(late.answer)
	wg.Wait()
	r.report(me, 2, done(r.op(me, 2, reload), gozzard.CodeOK))
	r.verdict(reload, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.restored(1)
}

// restores lists the operations sent by the server itself.
func (r *rig) restores() map[gozzard.Key]gozzard.Op {
	out := map[gozzard.Key]gozzard.Op{}
	for _, c := range r.commands(me, gozzard.CommandOperate) {
		for _, op := range c.Ops {
			if task, err := r.store.Task(r.t.Context(), op.Ref.Task); err == nil && task.Door == "relay" {
				out[op.Key] = op
			}
		}
	}
	return out
}

func (r *rig) restored(n int) (ops map[gozzard.Key]gozzard.Op) {
	r.t.Helper()
	r.until("nothing was restored", func() bool {
		ops = r.restores()
		return len(ops) == n
	})
	return ops
}

// An agent that lost its state counts its sessions from 1 again and may reach exactly the number that is registered.
// Its HELLO is then not a repeated old one.
func TestLostStateWithTheSameSession(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.hello(me, 1, journalA) // the welcome was lost
	r.forget()
	ip, err := gozzard.ParseIP("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}

	info := gozzard.HostInfo{Agent: me, Addrs: []gozzard.HostAddr{{IP: ip}}}
	again := func(pos gozzard.JournalPos, run uint64) {
		t.Helper()
		n := len(r.commands(me, gozzard.CommandGreet))
		r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 1, Journal: pos,
			Hello: &gozzard.Hello{Run: run, Host: info}})
		r.until("not asked for a new session", func() bool { return len(r.commands(me, gozzard.CommandGreet)) > n })
	}

	again(journalB, 0)
	again(journalA, 5) // an old copy of the folder

	if greet := r.commands(me, gozzard.CommandGreet)[0]; greet.Session != 1 ||
		len(r.commands(me, gozzard.CommandWelcome)) != 0 {
		t.Fatalf("%+v", greet)
	}

	r.hello(me, 2, journalB)
	r.restored(1)
}

// A server that stops after it learned that a host lost its state restores the host in its next run.
func TestLostStateIsRememberedByTheRecord(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.stop()

	store, err := sqlstore.OpenSQLite(t.Context(), r.path,
		sqlstore.Options{Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}

	// This is everything that the server did before it died.
	_, opened, err := store.OpenSession(t.Context(),
		record.Host{Info: gozzard.HostInfo{Agent: me}, Session: 2, Journal: journalB})
	if err != nil || !opened {
		t.Fatal(opened, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	r.forget()
	r.start()
	r.hello(me, 3, journalB)
	op := r.restored(1)[key]
	if op.Action != gozzard.ActionHost {
		t.Errorf("%+v", op)
	}

	r.report(me, 3, done(op, gozzard.CodeOK))

	r.until("it is not recorded", func() bool {
		hosts, err := r.store.Hosts(t.Context())
		return err == nil && len(hosts) == 1 && hosts[0].RestoredJournal == hosts[0].JournalSince
	})

	r.until("it is not settled", func() bool {
		open, err := r.store.OpenOf(t.Context(), []gozzard.AgentID{me})
		return err == nil && len(open) == 0
	})

	r.forget()
	r.hello(me, 4, journalB)
	time.Sleep(200 * time.Millisecond)

	if n := len(r.restores()); n != 0 {
		t.Errorf("%d restored once more", n)
	}
}

// A hostile host loses its state with every session. The server restores it a number of times and then waits, and the
// host beside it is restored at once.
func TestTD22StateIsLostAgainAndAgain(t *testing.T) {
	r := newRig(t)
	for i, agent := range []gozzard.AgentID{me, other} {
		r.hello(agent, 1, gozzard.JournalPos{ID: [16]byte{byte(100 + i)}, LSN: 1})
		task := r.operate(gozzard.ActionStart, 0, agent)
		r.report(agent, 1, done(r.op(agent, 1, task), gozzard.CodeOK))
		r.verdict(task, agent, gozzard.AttemptOK, gozzard.CodeOK)
	}

	// Each session has another journal. A restore that is under way when the next session begins is interrupted.
	r.forget()
	for session := uint64(2); session < 60; session++ {
		r.hello(me, session, gozzard.JournalPos{ID: [16]byte{byte(session)}, LSN: 1})
		time.Sleep(20 * time.Millisecond)
	}
	n := 0
	for _, c := range r.commands(me, gozzard.CommandOperate) {
		n += len(c.Ops)
	}
	if _, limited := r.refused.Load("state_lost_again"); n > 25 || !limited {
		t.Errorf("%d restores were sent, limited: %v", n, limited)
	}

	r.hello(other, 2, journalB)
	r.until("another host is not restored", func() bool {
		for _, c := range r.commands(other, gozzard.CommandOperate) {
			for _, op := range c.Ops {
				if op.Action == gozzard.ActionHost {
					return true
				}
			}
		}
		return false
	})
}
