package control_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// TestTI3Operate: a host that the caller may not see is unknown. A host that it may see, but not operate, is rejected
// with the reason. Nothing is sent to either.
func TestTI3Operate(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)

	someone := func(user string, g gozzard.Grant) gozzard.Caller {
		g.Nets = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		return gozzard.Caller{App: "app", User: user, Rights: &gozzard.Rights{Grants: []gozzard.Grant{g}}}
	}

	operator := someone("op", gozzard.Grant{Role: gozzard.RoleOperator, Namespaces: []string{"gse"},
		Actions: []gozzard.Action{gozzard.ActionStart, gozzard.ActionRegister}, Accounts: []string{"root"}})

	item := func(a gozzard.Action, namespace string, agents ...gozzard.AgentID) gozzard.Item {
		it := gozzard.Item{Action: a, Key: gozzard.Key{Namespace: namespace, Name: "p"}, Spec: spec(60)}
		for _, agent := range agents {
			it.Targets = append(it.Targets, gozzard.Target{Agent: agent})
		}
		return it
	}

	task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: operator, Items: []gozzard.Item{
		item(gozzard.ActionStart, "gse", me, other, "nobody"), item(gozzard.ActionStop, "gse", me),
		item(gozzard.ActionStart, "else", me),
	}})
	if err != nil {
		t.Fatal(err)
	}

	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))
	res, err := r.plane.Await(t.Context(), operator, task.ID, 20e9)
	if err != nil {
		t.Fatal(err)
	}

	want := []string{"", "agent agent-2 is not in the fleet: it never joined, or it has left",
		"agent nobody is not in the fleet: it never joined, or it has left", "not permitted: app app may not stop processes of gse here",
		"not permitted: app app may not start processes of else here"}
	codes := []gozzard.Code{gozzard.CodeOK, gozzard.CodeUnreachable, gozzard.CodeUnreachable, gozzard.CodeRefused,
		gozzard.CodeRefused}
	for i, a := range res.Attempts {
		if a.Outcome.Code != codes[i] || a.Outcome.Message != want[i] {
			t.Errorf("attempt %d: %+v", i, a.Outcome)
		}
	}

	if n := len(r.commands(other, gozzard.CommandOperate)); n > 0 {
		t.Errorf("a hidden host got %d commands", n)
	}

	for rec, err := range r.store.Processes(t.Context(), nil) {
		if err != nil || rec.ID != (gozzard.ProcID{Agent: me, Key: gozzard.Key{Namespace: "gse", Name: "p"}}) {
			t.Errorf("%+v is recorded: %v", rec.ID, err)
		}
	}

	// Another user of the same app may read it only with the right to see all of it.
	if _, err := r.plane.Results(t.Context(), someone("blind", gozzard.Grant{Role: gozzard.RoleViewer}),
		task.ID); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}

	if _, err := r.plane.Results(t.Context(), gozzard.Caller{App: "app", User: "boss", Rights: gozzard.Everything()},
		task.ID); err != nil {
		t.Error(err)
	}

	if _, err := r.plane.Results(t.Context(), gozzard.Caller{App: "b", User: "op", Rights: gozzard.Everything()},
		task.ID); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}
}

// TestTE6WholesNeedWholeRights: changing a whole host or business needs more than a right to a part of it.
func TestTE6WholesNeedWholeRights(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	addr := gozzard.HostAddr{IP: netip.MustParseAddr("127.0.0.1")}
	part := gozzard.Caller{App: "part", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin,
		Businesses: []int{2}, Clouds: []int{0}, Accounts: []string{"root"}}}, Assigned: r.plane.Assigned}}
	if err := r.plane.Rebind(t.Context(), part, addr, me, [32]byte{}); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}
	r.mustApply(business(process(46, "java", 1)))
	if err := r.plane.Rebind(t.Context(), part, addr, me, [32]byte{}); gozzard.KindOf(err) != gozzard.ErrAppForbidden {
		t.Error(err)
	}
	if err := r.plane.Rebind(t.Context(), gozzard.Caller{App: "none"}, addr, me,
		[32]byte{}); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}

	if err := r.plane.Rebind(t.Context(), caller, addr, me, [32]byte{}); err != nil {
		t.Error(err)
	}

	_, err := r.apply(business(process(47, "java", 1)), func(req *record.ApplyRequest) { req.Caller = part })
	if gozzard.KindOf(err) != gozzard.ErrAppForbidden || !strings.Contains(err.Error(), "may not change business 2") {
		t.Error(err)
	}
	alone := gozzard.Caller{App: gozzard.PersonApp + "alice", User: "alice", Rights: part.Rights}
	_, err = r.apply(business(process(47, "java", 1)), func(req *record.ApplyRequest) { req.Caller = alone })
	if err == nil || !strings.HasPrefix(err.Error(), "user alice may not change business 2") {
		t.Errorf("a person without an app: %v", err)
	}

	part.Rights.Grants[0].Clouds = nil
	r.mustApply(business(process(47, "java", 1)), func(req *record.ApplyRequest) { req.Caller = part })
}

// TestTI3Pools: a caller sees a pool only if it may see the processes that share it.
func TestTI3Pools(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	targets := []gozzard.Target{{Agent: me}, {Agent: other}}
	for _, ns := range []string{"mine", "theirs"} {
		if _, err := r.plane.SetGroups(t.Context(), record.GroupRequest{Caller: caller, Namespace: ns,
			Targets: targets, Groups: []record.Group{{ID: "pool", CPULimit: 20}}}); err != nil {
			t.Fatal(err)
		}
	}

	viewer := gozzard.Caller{App: "a", Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer,
		Namespaces: []string{"mine"}, Hosts: gozzard.HostsAny}}}}
	for _, tt := range []struct {
		caller    gozzard.Caller
		namespace string
		want      int
	}{{caller, "mine", 2}, {caller, "theirs", 2}, {viewer, "mine", 2}, {viewer, "theirs", 0},
		{gozzard.Caller{App: "none"}, "mine", 0}} {
		if got, err := r.plane.Groups(t.Context(), tt.caller, tt.namespace, targets); err != nil || len(got) != tt.want {
			t.Errorf("app %s sees %d pools of %s: %v", tt.caller.App, len(got), tt.namespace, err)
		}
	}

	answers, err := r.plane.SetGroups(t.Context(),
		record.GroupRequest{Caller: viewer, Namespace: "mine", Targets: targets,
			Groups: []record.Group{{ID: "pool", CPULimit: 90}}})
	if err != nil {
		t.Fatal(err)
	}

	for _, a := range answers {
		if a.Outcome.Code != gozzard.CodeRefused {
			t.Errorf("%+v", a)
		}
	}

	if got, err := r.plane.Groups(t.Context(), caller, "mine", targets); err != nil || len(got) != 2 ||
		got[0].CPULimit != 20 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRefusalsOfHostsAreCounted: the server counts operations that the policy of a host forbids.
func TestRefusalsOfHostsAreCounted(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeRefused))
	r.verdict(task, me, gozzard.AttemptFailed, gozzard.CodeRefused)
	r.until("not counted", func() bool { _, counted := r.refused.Load("refused_by_host"); return counted })
}

// TestTI3Logs: a process that the caller may not see has no log, and no request goes to its host.
func TestTI3Logs(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	viewer := gozzard.Caller{App: "app", User: "u",
		Rights: &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleViewer, Namespaces: []string{"mine"},
			Hosts: gozzard.HostsAny}}}}
	_, err := r.plane.Log(t.Context(), viewer, gozzard.Target{Agent: me}, gozzard.LogQuery{Key: key})
	if gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Errorf("%v", err)
	}
	if asked := r.commands(me, gozzard.CommandLogs); len(asked) > 0 {
		t.Errorf("the host was asked %d times", len(asked))
	}
}
