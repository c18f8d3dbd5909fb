package control_test

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

func TestFindProcessesReportsThisMoment(t *testing.T) {
	r := newRig(t)
	r.mustApply(business(process(46, "java", 2), process(48, "java", 1)))

	find := func(q topology.Query) []topology.Row {
		t.Helper()
		q.Biz, q.Limit = 2, -1
		n, rows := r.plane.FindProcesses(caller, q)
		if n != len(rows) {
			t.Fatalf("%d rows of %d", len(rows), n)
		}
		return rows
	}

	rows := find(topology.Query{})
	if len(rows) != 2 || rows[0].Process != 46 || rows[0].State != gozzard.StateUnregistered || !rows[0].Stale ||
		rows[0].ReportedAt != 0 || rows[0].Instances[1].Status.PID != -1 {
		t.Fatalf("%+v", rows)
	}

	r.hello(me, 1, journalA)
	one, two := running("java", 1), running("java", 2)
	two.ReportedAt = 1600000000
	r.statuses(me, 1, one)

	if rows = find(topology.Query{}); rows[0].State != gozzard.StateStopped || rows[0].Hosted || rows[0].Stale ||
		rows[0].ReportedAt != 0 {
		t.Fatalf("half of it runs: %+v", rows[0])
	}

	r.statuses(me, 1, two)
	rows = find(topology.Query{States: []gozzard.RunState{gozzard.StateRunning}})
	if len(rows) != 1 || rows[0].Process != 46 || !rows[0].Hosted || rows[0].ReportedAt != 1600000000 ||
		rows[0].Instances[0].Status.PID != 4711 {
		t.Fatalf("all of it runs: %+v", rows)
	}

	two.State, two.PID = gozzard.StateStopped, -1
	r.statuses(me, 1, two)

	if rows = find(topology.Query{States: []gozzard.RunState{gozzard.StateRunning}}); len(rows) != 0 {
		t.Fatalf("one was killed: %+v", rows)
	}

	tree := r.plane.TopologyTree(caller, 2, topology.EnvAny)
	if len(tree) != 1 || tree[0].Processes != 2 || tree[0].Stopped != 1 || tree[0].Unregistered != 1 ||
		tree[0].Hosted != 1 || len(tree[0].Modules) != 1 {
		t.Fatalf("%+v", tree)
	}

	if tree := r.plane.TopologyTree(caller, 2, topology.EnvTest); len(tree) != 0 {
		t.Fatalf("%+v", tree)
	}
}

// TestStatusAfterApplyAndRestart: the first query shows what is already running, after a business was applied and after
// a restart of the server.
func TestStatusAfterApplyAndRestart(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.statuses(me, 1, running("java", 1))
	r.mustApply(business(process(46, "java", 1)))

	if _, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2,
		Limit: 1}); rows[0].State != gozzard.StateRunning {
		t.Fatalf("%+v", rows)
	}

	r.stop()
	r.start()

	if _, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2,
		Limit: 1}); rows[0].State != gozzard.StateUnregistered || !rows[0].Stale {
		t.Fatalf("nothing was heard yet, and nothing is recorded: %+v", rows)
	}

	r.hello(me, 2, journalA)
	r.statuses(me, 2, running("java", 1))

	if _, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2,
		Limit: 1}); rows[0].State != gozzard.StateRunning || rows[0].Stale {
		t.Fatalf("%+v", rows)
	}
}

// TestQuestionsWhileTheFleetChanges: a query after a report shows the report, even with many concurrent queries.
func TestQuestionsWhileTheFleetChanges(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 1)))
	s := running("java", 1)
	for i := range 200 {
		if s.State = gozzard.StateRunning; i%2 == 1 {
			s.State = gozzard.StateStopped
		}
		r.statuses(me, 1, s)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, rows := r.plane.FindProcesses(caller,
					topology.Query{Biz: 2, Limit: 1}); rows[0].State != s.State {
					t.Errorf("round %d: %s, want %s", i, rows[0].State, s.State)
				}
			})
		}
		wg.Wait()
	}
}

func TestTopologyItems(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	bare := process(48, "python", 1)
	bare.Stop, bare.User = "", ""
	b := business(process(46, "java", 2), bare)
	b.Sets[0].Modules[0].Instances[0].Host.Agent = me
	b.Sets[0].Modules[0].Instances[1].Host.Agent = "of-another-manager"
	r.mustApply(b)
	_, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: -1})
	items, err := r.plane.TopologyItems(t.Context(), 2, rows, gozzard.ActionStop)
	if err != nil || len(items) != 3 {
		t.Fatalf("%d items: %v", len(items), err)
	}

	second := items[1]
	if second.Row != &rows[0] || second.Instance != 1 || len(second.Missing) != 0 || second.Item.Refused != nil {
		t.Fatalf("%+v", second)
	}

	want := gozzard.Item{
		Action: gozzard.ActionStop, Key: gozzard.Key{Namespace: "GSEKIT_BIZ_2", Name: "java_2"},
		Labels: map[string]string{"bk_process_name": "java", "bk_process_id": "46", "business": "2", "set": "管控平台",
			"module": "gse"},
		Targets: []gozzard.Target{{Agent: me, ResultKey: "0:127.0.0.1:GSEKIT_BIZ_2:java_2"}},
		Spec: &gozzard.Spec{
			Identity: gozzard.Identity{ProcName: "java", SetupPath: "/data/管控平台", PIDPath: "/run/java_2.pid",
				User: "root"},
			Control: gozzard.Control{Start: "./start.sh 2", Stop: "./stop.sh", Restart: "./restart.sh"},
			Policy:  func() gozzard.Policy { p := gozzard.DefaultPolicy(); p.OpTimeout = 30; return p }(),
		},
	}

	if diff := cmp.Diff(want, second.Item, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}

	third := items[2]
	if diff := cmp.Diff([]string{"stop_cmd", "user"}, third.Missing); diff != "" {
		t.Error(diff)
	}
	if a := third.Item.Targets[0]; a.Agent != "" || a.Addr.String() != "0:127.0.0.2" {
		t.Errorf("an agent that is none of ours: %+v", a)
	}

	gone := rows[1]
	gone.Service = 999
	items, err = r.plane.TopologyItems(t.Context(), 2, []topology.Row{gone}, gozzard.ActionStart)
	if err != nil || items[0].Item.Refused == nil || items[0].Item.Refused.Code != gozzard.CodeNoDefinition {
		t.Errorf("a process that went: %+v %v", items, err)
	}

	items, err = r.plane.TopologyItems(t.Context(), 2, []topology.Row{gone}, gozzard.ActionUnregister)
	if err != nil || items[0].Item.Refused != nil || items[0].Item.Spec != nil {
		t.Errorf("forgetting needs no definition: %+v %v", items, err)
	}
}

// TestOtherServersAreSeen: a business that another server on the same record has applied is found soon.
func TestOtherServersAreSeen(t *testing.T) {
	r := newRig(t)
	b := business(process(46, "java", 1))
	n, err := topology.Number(nil, b)
	if err != nil {
		t.Fatal(err)
	}

	c, _ := topology.Compare(nil, nil, b, n)
	if _, err := r.store.SaveBusiness(t.Context(), c, "file", auditNow()); err != nil {
		t.Fatal(err)
	}

	r.until("the business is not seen", func() bool {
		n, _ := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: 1})
		return n == 1
	})

	if done := r.mustApply(business(process(46, "java", 1))); done.Applied || done.Version != 1 {
		t.Fatalf("%+v", done)
	}
}

func auditNow() (row gozzard.AuditRow) {
	row.At, row.Caller, row.Act = time.Now(), caller, "topology:apply:2"
	return row
}

// TestTemplatesOfInstances: a template that cannot be rendered rejects the actions that bring a definition to the host. The
// others take the definition that the host has.
func TestTemplatesOfInstances(t *testing.T) {
	r := newRig(t)
	broken := process(46, "java", 1)
	broken.Start = "./start.sh mk${nope}"
	r.mustApply(business(broken, process(48, "web", 1)))
	_, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: -1})

	for action, rejected := range map[gozzard.Action]bool{gozzard.ActionStart: true, gozzard.ActionHost: true,
		gozzard.ActionRestart: true, gozzard.ActionReload: true, gozzard.ActionStop: false, gozzard.ActionKill: false,
		gozzard.ActionQuery: false, gozzard.ActionUnhost: false} {
		items, err := r.plane.TopologyItems(t.Context(), 2, rows, action)
		if err != nil || len(items) != 2 {
			t.Fatalf("%s: %v %+v", action, err, items)
		}
		first, second := items[0], items[1]
		if (first.Item.Refused != nil) != rejected || first.Item.Spec != nil || (first.Template != "") != rejected {
			t.Errorf("%s: %+v", action, first)
		}
		if rejected && !strings.Contains(first.Template, "line 1: ./start.sh mk${nope}: Undefined") {
			t.Errorf("%s: %s", action, first.Template)
		}
		if second.Item.Refused != nil || second.Item.Spec == nil {
			t.Errorf("%s of another process: %+v", action, second)
		}
	}
}
