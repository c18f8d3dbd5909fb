package tenants_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

var (
	requests = flag.Int("requests", 1000, "how many random requests tenants send")
	seed     = flag.Uint64("seed", 1, "of the requests")
)

// TestTI3TwoTenants sends random requests of two tenants to every call of every door of one server. The answers for A
// must be byte for byte those of a server that has only what A may see: no foreign row, no foreign count, the same
// words for what is hidden as for what does not exist. And no operation acts on what does not belong to its caller, or
// runs as an account that its caller has no right to. Half of the requests are those of tenants without networks: only
// the topology says which hosts they reach.
func TestTI3TwoTenants(t *testing.T) {
	t.Run("networks", func(t *testing.T) { twoTenants(t, networks, *requests/2) })
	t.Run("businesses", func(t *testing.T) { twoTenants(t, withoutNetworks, *requests-*requests/2) })
}

func twoTenants(t *testing.T, k kind, requests int) {
	whole, part := newWorldOf(t, k, ""), newWorldOf(t, k, "A")
	m := newMaker(whole, *seed)
	asked := map[string]int{}
	ok := 0
	for i := range requests {
		app := "A"
		if m.IntN(3) == 0 {
			app = "B"
		}
		m.app = app
		r := m.next()
		code, got := whole.send(app, r)
		whole.settle()
		for _, seen := range []string{"A", "B", "AB", "N"} {
			if !strings.Contains(seen, app) && strings.Contains(got, tag(seen)) {
				t.Fatalf("request %d, seed %d: %s is shown what %s may see:\n%s\n%d %s", i, *seed, app, seen, r, code,
					got)
			}
		}
		if app == "A" {
			wantCode, want := part.send(app, r)
			if diff := cmp.Diff(want, got); diff != "" || code != wantCode {
				t.Fatalf("request %d, seed %d: %s\nis answered %d; with nothing foreign %d (-without +with foreign):\n%s", i, *seed, r, code, wantCode, diff)
			}
			asked[strings.SplitN(r.path, "?", 2)[0]]++
		}
		m.given(app, whole, part)
		part.keepUp(whole)
		if code < 300 && !strings.Contains(got, `"result":false`) {
			ok++
		}
		m.jobs = len(whole.jobSizes())
	}

	whole.checkEffects(t)

	if ok < requests/4 || len(asked) < 50 {
		t.Fatalf("only %d of %d requests were good, to %d paths: nothing is proven", ok, requests, len(asked))
	}

	t.Logf("%d requests to %d paths of A, %d good, %d operations carried out", requests, len(asked), ok,
		len(whole.did))
}

// given records the tasks that a request made, by the name that requests and answers use for them. B's tasks are not in
// the world of A: there they have a number that no task has.
func (m *maker) given(app string, whole, part *world) {
	for _, id := range whole.newTasks() {
		name := fmt.Sprintf("task-%d", m.tasks)
		whole.names.set(name, id)
		other := fmt.Sprintf("GSETASK:20260701020304:%d", 1_000_000_000+m.tasks)
		if app == "A" {
			other = part.newTasks()[0]
		}
		part.names.set(name, other)
		m.tasks++
	}
}

// keepUp makes jobs until this world has used as many job numbers as the other one.
func (w *world) keepUp(other *world) {
	w.t.Helper()
	w.settle()

	for len(w.jobSizes()) < len(other.jobSizes()) {
		j := record.Job{Biz: filler, Action: gozzard.ActionStart, Caller: gozzard.Caller{App: "filler"},
			State: record.JobFailed}
		tasks := make([]record.JobTask, other.jobSizes()[len(w.jobSizes())])
		for i := range tasks {
			tasks[i] = record.JobTask{Biz: filler, State: record.JobFailed}
		}
		if err := w.Store.CreateJob(w.t.Context(), &j, tasks); err != nil {
			w.t.Fatal(err)
		}
	}
}

// checkEffects checks everything that agents received and everything that is recorded: each operation acts on what
// belongs to its caller, and each definition belongs to a caller that may change it.
func (w *world) checkEffects(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	did := w.did
	w.mu.Unlock()
	byApp := map[string]int{}
	for _, d := range did {
		task, err := w.Store.Task(t.Context(), d.op.Ref.Task)
		if err != nil {
			t.Fatal(err)
		}
		app := task.Caller.App
		if app != "admin" && !w.owns(app, d.agent, d.op.Key.Namespace) {
			t.Errorf("%s did %s to %s on %s", app, d.op.Action, d.op.Key, d.agent)
		}
		if app != "admin" && !d.op.Action.ReadOnly() {
			w.checkAccount(t, app, &d.op)
		}
		byApp[app]++
	}

	if byApp["A"] == 0 || byApp["B"] == 0 {
		t.Errorf("nothing was done by one of them: %v", byApp)
	}

	// TE6: what no caller may change is unchanged.
	kept := map[gozzard.ProcID]bool{}
	for rec, err := range w.Store.Processes(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		kept[rec.ID] = true
		mine := w.owns("A", rec.ID.Agent, rec.ID.Namespace) || w.owns("B", rec.ID.Agent, rec.ID.Namespace)
		if s, err := gozzard.DecodeSpec(rec.Spec); !mine &&
			(err != nil || s.Control.Start != "./"+tag("N") || rec.Labels["tag"] != tag("N")) {
			t.Errorf("the definition of %s on %s was changed: %+v %v", rec.ID.Key, rec.ID.Agent, s, err)
		}
	}

	for _, p := range w.kind.procs() {
		if p.seen == "N" && !kept[gozzard.ProcID{Agent: p.agent, Key: p.key}] {
			t.Errorf("%s on %s is registered no more", p.key, p.agent)
		}
	}

	var agents []gozzard.AgentID
	for _, h := range places() {
		agents = append(agents, h.agent)
	}

	groups, err := w.Store.Groups(t.Context(), "", agents)
	if err != nil {
		t.Fatal(err)
	}

	for _, g := range groups {
		if !w.owns("A", g.Agent, g.Namespace) && !w.owns("B", g.Agent, g.Namespace) {
			t.Errorf("a pool was set for %s on %s", g.Namespace, g.Agent)
		}
	}

	for _, biz := range []int{2, 3} {
		if rec, err := w.Plane.Business(t.Context(), admin, biz); err != nil || rec.Version != 1 {
			t.Errorf("business %d is at version %d: %v", biz, rec.Version, err)
		}
	}

	if n, _ := w.Plane.Find(admin, fleet.Filter{Agents: []gozzard.AgentID{"host-n1"}}, 0, 10); n != 1 {
		t.Errorf("%d processes on a host that belongs to no tenant", n)
	}
}

// checkAccount checks that a command of a tenant is for the tenant's account, and says so to the agent.
func (w *world) checkAccount(t *testing.T, app string, op *gozzard.Op) {
	t.Helper()
	want := accountOf(app)
	if op.Account != want {
		t.Errorf("%s sent %s of %s for the account %q, not %q", app, op.Action, op.Key, op.Account, want)
	}
	if len(op.Spec) == 0 {
		return
	}
	if s, err := gozzard.DecodeSpec(op.Spec); err != nil || s.Identity.User != want {
		t.Errorf("%s sent %s of %s with the account %q, not %q: %v", app, op.Action, op.Key, s.Identity.User, want, err)
	}
}

// owns decides which tenant may do what, independently of the program's code. In the world with networks host-a2 is not
// assigned to business 2, nor host-b2 to business 3.
func (w *world) owns(app string, agent gozzard.AgentID, namespace string) bool {
	if _, business := gozzard.BusinessOf(namespace); w.kind == networks && business &&
		(agent == "host-a2" || agent == "host-b2") || w.kind == withoutNetworks && !business {
		return false
	}
	switch app {
	case "A":
		return (agent == "host-a1" || agent == "host-a2" || agent == "host-s1") &&
			(strings.HasPrefix(namespace, "alpha-") || namespace == "GSEKIT_BIZ_2" || namespace == "JOB_BIZ_2")
	case "B":
		return (agent == "host-b1" || agent == "host-b2" || agent == "host-s1") &&
			(strings.HasPrefix(namespace, "beta-") || namespace == "GSEKIT_BIZ_3" || namespace == "JOB_BIZ_3")
	}
	panic(fmt.Sprint("no tenant ", app))
}
