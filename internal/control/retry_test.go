package control_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// failedItems are the items that repeat what failed in a task.
func (r *rig) failedItems(c gozzard.Caller, task gozzard.Task, only ...int) []gozzard.Item {
	r.t.Helper()
	items, err := r.plane.FailedItems(r.t.Context(), c, task.ID, only)
	if err != nil {
		r.t.Fatal(err)
	}
	return items
}

// TestRetryOnlyWhatFailed: a success, a process that was running already, an attempt without a verdict and one that a
// newer operation replaced are not repeated; a failure and an interrupted attempt are.
func TestRetryOnlyWhatFailed(t *testing.T) {
	r := newRig(t)
	agents := []gozzard.AgentID{"agent-1", "agent-2", "agent-3", "agent-4", "agent-5", "agent-6"}
	for _, a := range agents {
		r.hello(a, 1, journalA)
	}
	task := r.operate(gozzard.ActionStart, 0, append(agents, "nobody")...)
	for i, code := range []gozzard.Code{gozzard.CodeOK, gozzard.CodeAlreadyRunning, gozzard.CodeCommandFailed,
		gozzard.CodeSuperseded, gozzard.CodeInterrupted} {
		rep := done(r.op(agents[i], 1, task), code)
		switch code {
		case gozzard.CodeSuperseded:
			rep.Phase = gozzard.PhaseNever
		case gozzard.CodeInterrupted:
			rep.Phase = gozzard.PhaseInterrupted
		}
		r.report(agents[i], 1, rep)
		r.until("no verdict", func() bool {
			res, err := r.plane.Results(t.Context(), caller, task.ID)
			return err == nil && res.Attempts[i].State.Final()
		})
	}

	items := r.failedItems(caller, task)
	if len(items) != 2 && len(items) != 1 {
		t.Fatalf("the items are %+v", items)
	}
	var targets []string
	for _, it := range items {
		if it.Action != gozzard.ActionStart || it.Key != key {
			t.Errorf("an item is %+v", it)
		}
		for _, at := range it.Targets {
			targets = append(targets, string(at.Agent)+at.Addr.String())
		}
	}
	if got := strings.Join(targets, " "); !strings.Contains(got, "agent-3") || !strings.Contains(got, "agent-5") ||
		len(targets) != 3 {
		t.Errorf("repeated are %v", targets)
	}

	// Chosen attempts only; one that did not fail and one that is not there add nothing.
	if some := r.failedItems(caller, task, 0, 4, 99); len(some) != 1 || len(some[0].Targets) != 1 ||
		some[0].Targets[0].Agent != "agent-5" {
		t.Errorf("of the chosen attempts %+v are repeated", some)
	}

	// The new task is about exactly those, and a repeated request is the same task.
	op := &gozzard.Operation{Caller: caller, Items: items, IdempotencyKey: "again"}
	again, err := r.plane.Operate(t.Context(), op)
	if err != nil || again.Targets != 3 || again.ID == task.ID {
		t.Errorf("the new task is %+v: %v", again, err)
	}
	if second, err := r.plane.Operate(t.Context(), op); err != nil || second.ID != again.ID {
		t.Errorf("the same request gives %+v: %v", second, err)
	}
	r.report("agent-3", 1, done(r.op("agent-3", 1, again), gozzard.CodeOK))
}

// TestRetryDefinitions: a retry of a start does not bring an old definition back, and a retry of a registration brings
// its own.
func TestRetryDefinitions(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	start := r.operate(gozzard.ActionStart, 0, me) // with a definition, which is recorded
	r.report(me, 1, done(r.op(me, 1, start), gozzard.CodeCommandFailed))
	r.verdict(start, me, gozzard.AttemptFailed, gozzard.CodeCommandFailed)
	if items := r.failedItems(caller, start); len(items) != 1 || items[0].Spec != nil {
		t.Errorf("the retry of a start is %+v", items)
	}

	update := r.operate(gozzard.ActionUpdate, 0, me)
	r.report(me, 1, done(r.op(me, 1, update), gozzard.CodeCommandFailed))
	r.verdict(update, me, gozzard.AttemptFailed, gozzard.CodeCommandFailed)
	if items := r.failedItems(caller, update); len(items) != 1 || items[0].Spec == nil ||
		items[0].Spec.Control.Start != "./start" {
		t.Errorf("the retry of an update is %+v", items)
	}

	// A host that was offline has registered nothing, so the definition comes again.
	other := r.operate(gozzard.ActionStart, 0, "agent-9")
	if items := r.failedItems(caller, other); len(items) != 1 || items[0].Spec == nil {
		t.Errorf("the retry for a host without the definition is %+v", items)
	}
}

// TestTI3Retry: a caller that may not read a task cannot repeat it, and one that may only read it is rejected.
func TestTI3Retry(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	task := r.operate(gozzard.ActionStart, 0, me)
	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeCommandFailed))
	r.verdict(task, me, gozzard.AttemptFailed, gozzard.CodeCommandFailed)

	nets := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	viewer := gozzard.Caller{App: "app", User: "viewer", Rights: &gozzard.Rights{Grants: []gozzard.Grant{
		{Role: gozzard.RoleViewer, Namespaces: []string{"gse"}, Nets: nets}}}}
	for name, c := range map[string]gozzard.Caller{"another app": {App: "b", User: "admin", Rights: gozzard.Everything()},
		"no rights": {App: "app", User: "x"}, "other namespace": {App: "app", User: "x", Rights: &gozzard.Rights{
			Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin, Namespaces: []string{"else"}}}}}} {
		if items, err := r.plane.FailedItems(t.Context(), c, task.ID, nil); gozzard.KindOf(err) != gozzard.ErrNotFound {
			t.Errorf("%s gets %+v: %v", name, items, err)
		}
	}

	items := r.failedItems(viewer, task)
	r.forget()
	if _, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: viewer, Items: items}); gozzard.KindOf(err) !=
		gozzard.ErrAppForbidden {
		t.Errorf("a viewer repeats a task: %v", err)
	}
	if n := len(r.commands(me, gozzard.CommandOperate)); n > 0 {
		t.Errorf("%d commands were sent for a viewer", n)
	}
	if _, err := r.plane.FailedItems(t.Context(), caller, "nonsense", nil); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Error(err)
	}
}
