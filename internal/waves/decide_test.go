package waves_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// TestOrder is the last column of the contract's table of actions.
func TestOrder(t *testing.T) {
	up := []string{"p1_1@0:10.0.0.1", "p2_1@0:10.0.0.1 p4_1@0:10.0.0.1", "p3_1@0:10.0.0.1"}
	down := []string{"p3_1@0:10.0.0.1", "p2_1@0:10.0.0.1 p4_1@0:10.0.0.1", "p1_1@0:10.0.0.1"}
	once := []string{"p1_1@0:10.0.0.1 p2_1@0:10.0.0.1 p3_1@0:10.0.0.1 p4_1@0:10.0.0.1"}
	r := newRig(t)
	for i, priority := range []int{-3, 0, 10, 0} {
		r.process(i+1, topology.Row{Priority: priority})
	}

	r.run()

	for _, tt := range []struct {
		action gozzard.Action
		want   []string
	}{
		{gozzard.ActionStart, up},
		{gozzard.ActionStop, down},
		{gozzard.ActionRestart, down},
		{gozzard.ActionReload, up},
		{gozzard.ActionKill, up},
		{gozzard.ActionHost, once},
		{gozzard.ActionUnhost, once},
	} {
		t.Run(tt.action.String(), func(t *testing.T) {
			r.sent = nil
			j, tasks := r.finish(r.create(tt.action, "").ID)
			same(t, "operations", r.waves(), tt.want)
			same(t, "state", j.State, record.JobSucceeded)
			same(t, "granularity", j.Granularity, record.ByBusiness)

			for _, task := range tasks {
				if task.State != record.JobSucceeded || task.Task == "" || task.Started.IsZero() ||
					task.Ended.IsZero() {
					t.Errorf("task %+v", task)
				}
			}

			for i, s := range r.sent {
				if s.op.Caller != caller || s.op.Door != "jobs" || s.op.Items[0].Action != tt.action ||
					s.op.WaitOffline != 0 {
					t.Errorf("operation %+v", s.op)
				}
				if i > 0 && s.op.IdempotencyKey == r.sent[i-1].op.IdempotencyKey {
					t.Error("two operations have one key")
				}
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	r.run()

	for _, a := range []gozzard.Action{gozzard.ActionNone, gozzard.ActionQuery, gozzard.ActionRegister,
		gozzard.ActionUpdate, gozzard.ActionUnregister, 99} {
		_, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: a})
		wantKind(t, err, gozzard.ErrInvalid)
	}

	_, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStart,
		Granularity: "biz"})
	wantKind(t, err, gozzard.ErrInvalid)
	r.rows[0].Instances = make([]topology.RowInstance, record.MaxJobTasks+1)
	_, err = r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStart})
	wantKind(t, err, gozzard.ErrInvalid)

	if has, err := r.runner.HasJobs(t.Context(), caller, biz); has || err != nil {
		t.Fatalf("something was recorded: %v, %v", has, err)
	}
}

// TestVerdicts is the contract's table of results: which are good, which are nothing to do, and which fail.
func TestVerdicts(t *testing.T) {
	all := []gozzard.Action{gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionRestart, gozzard.ActionReload,
		gozzard.ActionKill, gozzard.ActionHost,
		gozzard.ActionUnhost}
	codes := []gozzard.Code{gozzard.CodeOK, gozzard.CodeUnreachable, gozzard.CodeAlreadyRunning,
		gozzard.CodeNotRunning, gozzard.CodeUnknownAction,
		gozzard.CodeCheckFailed, gozzard.CodeAlreadyRegistered, gozzard.CodeCommandFailed, gozzard.CodeRefused,
		gozzard.CodeNoDefinition,
		gozzard.CodeInterrupted, gozzard.CodeSuperseded, gozzard.CodeExpired, "of another time"}
	r := newRig(t)
	for i, code := range codes {
		r.process(i+1, topology.Row{})
		if code != gozzard.CodeOK {
			r.gives[fmt.Sprintf("p%d_1@0:10.0.0.1", i+1)] = gozzard.Outcome{Code: code, Message: "why " + string(code)}
		}
	}

	r.run()

	for _, action := range all {
		j, tasks := r.finish(r.create(action, "").ID)
		same(t, "state of the job", j.State, record.JobFailed)
		same(t, "reason of the job", j.Reason, record.ReasonNone)
		for i, code := range codes {
			want := record.JobTask{State: record.JobFailed, Reason: record.ReasonVerdict, Code: code,
				Message: "why " + string(code)}
			switch {
			case code == gozzard.CodeOK:
				want = record.JobTask{State: record.JobSucceeded}
			case code == gozzard.CodeNotRunning && action == gozzard.ActionStop:
				want.State = record.JobIgnored
			}
			got := record.JobTask{State: tasks[i].State, Reason: tasks[i].Reason, Code: tasks[i].Code,
				Message: tasks[i].Message}
			same(t, fmt.Sprintf("%s: %s", action, code), got, want)
		}
	}
}

func TestNothingToDoSucceeds(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{Priority: 2})
	r.process(2, topology.Row{Priority: 1})
	r.gives["p1_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeNotRunning}
	r.run()
	j, tasks := r.finish(r.create(gozzard.ActionStop, "").ID)
	same(t, "job", j.State, record.JobSucceeded)
	same(t, "tasks", states(tasks), "[p1_1 ignored verdict p2_1 succeeded]")
}

// TestGroups: a failure prevents the later waves of its group, and nothing else.
func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		granularity record.Granularity
		held        []int // processes
	}{
		{record.ByBusiness, []int{11, 12, 13, 14}},
		{record.BySet, []int{11, 12, 13}},
		{record.ByModule, []int{11, 12}},
		{record.ByHost, []int{11}},
	} {
		t.Run(string(tt.granularity), func(t *testing.T) {
			r := newRig(t)

			place := func(set, module, host int) topology.Row {
				return topology.Row{Set: set, Module: module,
					Host: topology.Host{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(host)})}}
			}

			for i, row := range []topology.Row{place(1, 1, 1), place(1, 1, 2), place(1, 2, 3), place(2, 3, 4)} {
				for wave, id := range []int{i + 1, i + 11} {
					row.Priority = wave
					r.process(id, row)
				}
			}

			r.gives["p1_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed}
			r.run()
			j, tasks := r.finish(r.create(gozzard.ActionStart, tt.granularity).ID)
			same(t, "job", j.State, record.JobFailed)
			var held []int
			for _, task := range tasks {
				switch {
				case task.Process == 1:
					same(t, "the one that failed", task.Reason, record.ReasonVerdict)
				case task.State == record.JobFailed:
					same(t, "reason", task.Reason, record.ReasonEarlier)
					same(t, "message", task.Message, "priority 0: process p1 (1) failed")
					if task.Task != "" || task.Ended.IsZero() || !task.Started.IsZero() {
						t.Errorf("a task that was not begun: %+v", task)
					}
					held = append(held, task.Process)
				default:
					same(t, "state", task.State, record.JobSucceeded)
				}
			}

			same(t, "held back", held, tt.held)
		})
	}
}

// TestMissing: a process with a missing attribute fails alone, and prevents later waves like any other failure.
func TestMissing(t *testing.T) {
	r := newRig(t)
	for i, priority := range []int{1, 1, 2} {
		r.process(i+1, topology.Row{Priority: priority})
	}

	r.missing[1] = []string{"start_cmd", "user"}
	r.run()
	_, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "tasks", states(tasks), "[p1_1 failed missing p2_1 succeeded p3_1 failed earlier]")
	same(t, "message", tasks[0].Message, "start_cmd, user")
	same(t, "message", tasks[2].Message, "priority 1: process p1 (1) failed")
	same(t, "operations", r.waves(), "[p2_1@0:10.0.0.1]")

	r.missing = map[int][]string{3: {"user"}} // in the last wave no other one follows
	j, tasks := r.finish(r.create(gozzard.ActionStart, "").ID)
	same(t, "tasks", states(tasks), "[p1_1 succeeded p2_1 succeeded p3_1 failed missing]")
	same(t, "job", j.State, record.JobFailed)
}

func TestNothingFits(t *testing.T) {
	r := newRig(t)
	r.run()
	j, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStart,
		Expression: "*.*.*.*.*", Raw: []byte("{}")})
	if err != nil || j.State != record.JobFailed || j.Reason != record.ReasonNothing || j.Ended.IsZero() {
		t.Fatalf("%+v, %v", j, err)
	}

	got, err := r.runner.Job(t.Context(), caller, biz, j.ID)
	if err != nil || got.Expression != "*.*.*.*.*" || string(got.Request) != "{}" || got.Caller != bare(caller) {
		t.Fatalf("%+v, %v", got, err)
	}

	_, err = r.runner.Retry(t.Context(), caller, biz, j.ID, nil)
	wantKind(t, err, gozzard.ErrInvalid)
	_, err = r.runner.Tasks(t.Context(), caller, biz+1, record.JobTaskFilter{Job: j.ID})
	wantKind(t, err, gozzard.ErrNotFound)
}

// TestTasks: a task has the definition of its process at the creation of the job.
func TestTasks(t *testing.T) {
	r := newRig(t)
	r.process(7, topology.Row{Name: "gse_agent", Set: 5, Module: 21, Priority: 4,
		Host:      topology.Host{Cloud: 3, IP: netip.MustParseAddr("10.1.2.3"), Agent: "agent-7"},
		Instances: []topology.RowInstance{{Local: 1, Inst: 9}, {Local: 2, Inst: 10}}})
	r.run()

	j, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStart,
		Granularity: record.ByHost,
		Info: func(it *record.TopologyItem) []byte {
			return fmt.Appendf(nil, "%s#%d", it.Row.Name, it.Row.Instances[it.Instance].Inst)
		}})
	if err != nil {
		t.Fatal(err)
	}

	_, tasks := r.finish(j.ID)
	same(t, "number of tasks", len(tasks), 2)
	got := tasks[1]
	got.ID, got.Task, got.Started, got.Ended = 0, "", time.Time{}, time.Time{}
	same(t, "task", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v",
		record.JobTask{Job: j.ID, Biz: biz, Process: 7, Name: "gse_agent", Set: 5, Module: 21, Local: 2, Inst: 10,
			Key: topology.Key(biz, "gse_agent", 2), Agent: "agent-7",
			Addr: gozzard.HostAddr{Cloud: 3, IP: netip.MustParseAddr("10.1.2.3")}, Group: "host:agent-7",
			Priority: 4, State: record.JobSucceeded, Info: []byte("gse_agent#10")}))
	same(t, "operations", r.waves(), "[gse_agent_1@agent-7 gse_agent_2@agent-7]")
	item := r.sent[0].op.Items[1]
	same(t, "labels", item.Labels, map[string]string{"bk_process_id": "7"})
	same(t, "result key", item.Targets[0].ResultKey, "3:10.1.2.3:GSEKIT_BIZ_2:gse_agent_2")
}

// TestSnapshot: a topology that is applied after the creation of a job does not change the job, not even after a
// restart or in a retry.
func TestSnapshot(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{Priority: 1})
	r.process(2, topology.Row{Priority: 2})
	r.open["p1_1@0:10.0.0.1"] = true
	r.gives["p2_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed}
	r.run()
	j := r.create(gozzard.ActionStart, "")
	r.until("the first wave is not sent", func() bool { return len(r.waves()) == 1 })
	r.mu.Lock()
	r.edition, r.rows = "second", nil
	r.missing[2] = []string{"start_cmd"}
	r.mu.Unlock()
	r.end()
	r.run()
	r.answer("p1_1@0:10.0.0.1")
	_, tasks := r.finish(j.ID)
	same(t, "tasks", states(tasks), "[p1_1 succeeded p2_1 failed verdict]")
	delete(r.gives, "p2_1@0:10.0.0.1")

	if _, err := r.runner.Retry(t.Context(), caller, biz, j.ID, nil); err != nil {
		t.Fatal(err)
	}

	j, _ = r.finish(j.ID)
	same(t, "job", j.State, record.JobSucceeded)
	same(t, "operations", r.waves(), "[p1_1@0:10.0.0.1 p2_1@0:10.0.0.1 p2_1@0:10.0.0.1]")

	for _, s := range r.sent {
		same(t, "definition", s.op.Items[0].Spec.Control.Start, "first")
	}
}
