package control_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// cancel cancels a task, or those attempts of it whose hosts are given.
func (r *rig) cancel(task gozzard.Task, only ...gozzard.AgentID) record.TaskResults {
	r.t.Helper()
	res, err := r.tryCancel(r.t.Context(), caller, task, only...)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *rig) tryCancel(ctx context.Context, c gozzard.Caller, task gozzard.Task, only ...gozzard.AgentID) (record.TaskResults, error) {
	q := &record.Cancel{Caller: c, Task: task.ID}
	if len(only) > 0 {
		q.Only = func(a *gozzard.Attempt) bool {
			for _, id := range only {
				if a.Agent == id {
					return true
				}
			}
			return false
		}
	}
	return r.plane.CancelTask(ctx, q)
}

// notSent checks that an agent never got an operation of a task.
func (r *rig) notSent(agent gozzard.AgentID, task gozzard.Task) {
	r.t.Helper()
	for _, c := range r.commands(agent, gozzard.CommandOperate) {
		for _, o := range c.Ops {
			if o.Ref.Task == task.Seq {
				r.t.Errorf("an operation of task %d was sent to %s", task.Seq, agent)
			}
		}
	}
}

// TestCancelWaiting: what waits for a host is cancelled before the caller gets its answer, and is sent neither when the host comes
// back nor after a restart of the server. The audit has it. A retry of the task is a new operation, which runs.
func TestCancelWaiting(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	r.stop() // no host is back yet after the start
	r.start()
	task := r.operate(gozzard.ActionReload, time.Hour, me, other)

	res := r.cancel(task, me)
	if a := res.Attempts[0]; a.State != gozzard.AttemptNotExecuted || a.Outcome.Code != gozzard.CodeCancelled {
		t.Errorf("%v %+v", a.State, a.Outcome)
	}
	if a := res.Attempts[1]; a.State != gozzard.AttemptPending {
		t.Errorf("what was not chosen is %v %+v", a.State, a.Outcome)
	}
	rows, err := r.store.Audit(t.Context(), 1)
	if err != nil || len(rows) != 1 || rows[0].Act != "cancel:reload" || rows[0].Targets != 1 || rows[0].Caller.App != "app" {
		t.Errorf("the audit has %+v, %v", rows, err)
	}
	r.cancel(task)

	r.stop()
	r.start()
	for _, id := range []gozzard.AgentID{me, other} {
		r.hello(id, 2, journalA)
		r.verdict(task, id, gozzard.AttemptNotExecuted, gozzard.CodeCancelled)
	}
	again, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: r.failedItems(caller, task)})
	if err != nil {
		t.Fatal(err)
	}
	r.report(me, 2, done(r.op(me, 2, again), gozzard.CodeOK)) // it would be sent after those of the task
	r.verdict(again, me, gozzard.AttemptOK, gozzard.CodeOK)
	r.notSent(me, task)
	r.notSent(other, task)
}

// TestCancelSent: what was sent runs on and gets its true verdict, and to cancel what has a verdict changes nothing.
func TestCancelSent(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionReload, 0, me)
	op := r.op(me, 1, task)
	if a := r.cancel(task).Attempts[0]; a.State != gozzard.AttemptDispatched {
		t.Errorf("%v %+v", a.State, a.Outcome)
	}
	if n := len(r.commands(me, gozzard.CommandCancel)); n > 0 {
		t.Errorf("the agent was asked to cancel it")
	}
	r.report(me, 1, done(op, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	if a := r.cancel(task).Attempts[0]; a.State != gozzard.AttemptOK {
		t.Errorf("%v %+v", a.State, a.Outcome)
	}
}

// TestCancelDefinition: a definition that no host got because its operation was cancelled is not registered.
func TestCancelDefinition(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.stop()
	r.start()
	task := r.operate(gozzard.ActionStart, time.Hour, me)
	if _, known := r.process(me); !known {
		t.Fatal("it is not registered while it waits")
	}
	r.cancel(task)
	if _, known := r.process(me); known {
		t.Error("it is registered")
	}
}

// process reads the process of the tests on a host.
func (r *rig) process(agent gozzard.AgentID) (record.Process, bool) {
	for rec, err := range r.store.Processes(r.t.Context(), []gozzard.ProcID{{Agent: agent, Key: key}}) {
		if err != nil {
			r.t.Fatal(err)
		}
		return rec, true
	}
	return record.Process{}, false
}

// TestTT4CancelOfOthers: a caller cancels only what it may read, and only with the right to do it. The task of another app is not
// found. If the right is missing for one of the hosts, nothing is cancelled.
func TestTT4CancelOfOthers(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalA)
	r.stop()
	r.start()
	task := r.operate(gozzard.ActionReload, time.Hour, me, other)
	limited := func(app, user string, role gozzard.Role, net string) gozzard.Caller {
		g := gozzard.Grant{Role: role, Namespaces: []string{"*"}, Nets: []netip.Prefix{netip.MustParsePrefix(net)}}
		if role == gozzard.RoleOperator {
			g.Accounts = []string{"*", "root"}
		}
		rights := &gozzard.Rights{Grants: []gozzard.Grant{g}}
		return gozzard.Caller{App: app, User: user, Rights: rights}
	}

	for name, x := range map[string]struct {
		caller gozzard.Caller
		kind   gozzard.ErrorKind
	}{
		"another app with every right": {gozzard.Caller{App: "evil", User: "admin", Rights: gozzard.Everything()}, gozzard.ErrNotFound},
		"same app, sees one host":      {limited("app", "eve", gozzard.RoleOperator, "127.0.0.1/32"), gozzard.ErrNotFound},
		"same app, may only look":      {limited("app", "eve", gozzard.RoleViewer, "127.0.0.0/24"), gozzard.ErrAppForbidden},
		"its own, lost one host":       {limited("app", "admin", gozzard.RoleOperator, "127.0.0.1/32"), gozzard.ErrAppForbidden},
	} {
		_, err := r.tryCancel(t.Context(), x.caller, task)
		if err == nil || gozzard.KindOf(err) != x.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.plane.CancelTask(t.Context(), &record.Cancel{Caller: caller, Task: task.ID, Door: "gse.transfer"}); gozzard.KindOf(err) !=
		gozzard.ErrNotFound {
		t.Errorf("another door: %v", err)
	}
	if _, err := r.plane.CancelTask(t.Context(), &record.Cancel{Caller: caller, Task: task.ID + "0"}); gozzard.KindOf(err) !=
		gozzard.ErrNotFound {
		t.Errorf("an unknown task: %v", err)
	}

	res, err := r.plane.Results(t.Context(), caller, task.ID)
	if err != nil || res.Attempts[0].State != gozzard.AttemptPending || res.Attempts[1].State != gozzard.AttemptPending {
		t.Errorf("%+v %v", res.Attempts, err)
	}
	rows, err := r.store.Audit(t.Context(), 10)
	for _, row := range rows {
		if strings.HasPrefix(row.Act, "cancel:") {
			t.Errorf("%+v", row)
		}
	}
	if err != nil {
		t.Error(err)
	}

	// The right for one of the hosts is enough for that one.
	if _, err := r.tryCancel(t.Context(), limited("app", "admin", gozzard.RoleOperator, "127.0.0.1/32"), task, me); err != nil {
		t.Error(err)
	}
	r.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeCancelled)
	r.verdict(task, other, gozzard.AttemptPending, "")
}

// TestPeersCancel: a server cancels what another one accepted and holds, and the host that then opens a session with a third one
// does not get it.
func TestPeersCancel(t *testing.T) {
	c := newCluster(t, time.Minute, "a", "b", "c")
	c.servers["a"].hello(me, 1, journalA)
	c.servers["a"].stop()
	accepts := c.add("d", time.Minute, nil) // it has just started: no server is the home of the host
	task := accepts.operate(gozzard.ActionReload, time.Hour, me)
	if a := c.servers["b"].cancel(task).Attempts[0]; a.State != gozzard.AttemptNotExecuted || a.Outcome.Code != gozzard.CodeCancelled {
		t.Errorf("%v %+v", a.State, a.Outcome)
	}

	for i, id := range []string{"c", "d"} {
		home, session := c.servers[id], uint64(i+2)
		home.hello(me, session, journalA)
		next := home.operate(gozzard.ActionReload, 0, me)
		home.report(me, session, done(home.op(me, session, next), gozzard.CodeOK)) // it would be sent after that of the task
		home.notSent(me, task)
	}
}

// TestPeersCancelQueued: what waits in the queue of the home of its agent is cancelled at any server: it asks the home, also when a
// message is lost. What the home has sent runs on.
func TestPeersCancelQueued(t *testing.T) {
	c := newCluster(t, time.Minute, "b")
	home := c.join(&rig{t: t, lease: time.Minute, server: "a", peers: clusterLink{c, "a"}, shared: c.store, window: 1, slack: time.Minute,
		resend: time.Minute, sent: map[gozzard.AgentID][]*gozzard.Command{}})
	home.hello(me, 1, journalA)
	home.hello(other, 1, journalA)
	c.awaitOnline("b", me, true)
	c.awaitOnline("b", other, true)
	task := home.operate(gozzard.ActionReload, 0, me, other)
	op := home.op(me, 1, task)

	// The home does not answer: the caller learns that nothing is certain.
	c.setLose(func(_, _ string, n *gozzard.PeerNews) bool { return len(n.Cancel) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.servers["b"].tryCancel(ctx, caller, task); gozzard.KindOf(err) != gozzard.ErrUnavailable {
		t.Errorf("%v", err)
	}

	lost := 0
	c.setLose(func(_, _ string, n *gozzard.PeerNews) bool {
		if len(n.Cancel)+len(n.Cancelled) > 0 && lost < 2 {
			lost++
			return true
		}
		return false
	})
	res := c.servers["b"].cancel(task)
	if s := res.Attempts[0]; s.State != gozzard.AttemptDispatched {
		t.Errorf("what was sent is %v %+v", s.State, s.Outcome)
	}
	if q := res.Attempts[1]; q.State != gozzard.AttemptNotExecuted || q.Outcome.Code != gozzard.CodeCancelled {
		t.Errorf("what was queued is %v %+v", q.State, q.Outcome)
	}
	home.report(me, 1, done(op, gozzard.CodeOK))
	home.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)

	next := home.operate(gozzard.ActionReload, 0, other)
	home.report(other, 1, done(home.op(other, 1, next), gozzard.CodeOK))
	home.notSent(other, task)
}

// TestPeersCancelWithoutHome: what a server that is gone may have sent is not sent again.
func TestPeersCancelWithoutHome(t *testing.T) {
	c := newCluster(t, time.Minute, "a")
	a := c.servers["a"]
	a.hello(me, 1, journalA)
	task := a.operate(gozzard.ActionReload, 0, me)
	a.op(me, 1, task)
	a.stop()

	b := c.add("b", time.Minute, nil)
	if s := b.cancel(task).Attempts[0]; s.State != gozzard.AttemptUnknown {
		t.Errorf("%v %+v", s.State, s.Outcome)
	}
	b.hello(me, 2, journalA)
	b.verdict(task, me, gozzard.AttemptNotExecuted, gozzard.CodeUnreachable)
	b.notSent(me, task)
}
