package job_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
)

const taskID = gozzard.TaskID("20180315180551:1000")

func addr(cloud int, ip string) gozzard.HostAddr {
	return gozzard.HostAddr{Cloud: cloud, IP: netip.MustParseAddr(ip)}
}

// fake is a plane that records its calls. 10.0.0.1 and 10.0.0.2 have Linux, 10.0.0.9 has Windows, others
// are unknown.
type fake struct {
	calls   []call
	results map[gozzard.TaskID]record.TaskResults
	last    *gozzard.Operation
	err     error
}

// call is one call as golden files show it.
type call struct {
	Door   string      `json:"door"`
	Caller string      `json:"caller"`
	Key    string      `json:"idempotency_key,omitempty"`
	Items  []itemShown `json:"items"`
}

type itemShown struct {
	Action  string            `json:"action"`
	Key     string            `json:"key"`
	Labels  map[string]string `json:"labels"`
	Spec    *gozzard.Spec     `json:"spec"`
	Targets []targetShown     `json:"targets"`
}

type targetShown struct {
	Addr    string           `json:"addr"`
	Key     string           `json:"key"`
	Refused *gozzard.Outcome `json:"refused,omitempty"`
}

func (f *fake) Operate(_ context.Context, op *gozzard.Operation) (gozzard.Task, error) {
	c := call{Door: op.Door, Caller: op.Caller.App + "/" + op.Caller.User, Key: op.IdempotencyKey}
	for _, it := range op.Items {
		shown := itemShown{Action: it.Action.Stored(), Key: it.Key.String(), Labels: it.Labels, Spec: it.Spec}
		for _, t := range it.Targets {
			shown.Targets = append(shown.Targets, targetShown{Addr: t.Addr.String(), Key: t.ResultKey,
				Refused: t.Refused})
		}
		c.Items = append(c.Items, shown)
	}
	f.calls, f.last = append(f.calls, c), op
	return gozzard.Task{ID: taskID, Seq: 1000, Caller: op.Caller, Door: op.Door}, f.err
}

func (f *fake) Results(_ context.Context, caller gozzard.Caller, id gozzard.TaskID) (record.TaskResults, error) {
	if f.err != nil {
		return record.TaskResults{}, f.err
	}
	r, ok := f.results[id]
	if !ok || r.Task.Caller.App != caller.App {
		return record.TaskResults{}, gozzard.Errorf(gozzard.ErrNotFound, "task %.10s is unknown", id)
	}
	return r, nil
}

func (f *fake) Resolve(_ gozzard.Caller, t gozzard.Target) (fleet.Host, bool) {
	system := map[gozzard.HostAddr]string{addr(0, "10.0.0.1"): "linux", addr(0, "10.0.0.2"): "linux",
		addr(0, "10.0.0.9"): "windows"}[t.Addr]
	return fleet.Host{Info: gozzard.HostInfo{OS: system}}, system != ""
}

// tasks are results that polls find.
func tasks() map[gozzard.TaskID]record.TaskResults {
	const agent, path = gozzard.AgentID("agent-1"), "/usr/local/gse/gseagent/plugins/unifyTlogc/sbin"
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "bk_gse_unifyTlogc",
		SetupPath: path, User: "root"}})
	key := gozzard.Key{Namespace: "JOB_BIZ_2", Name: "bk_gse_unifyTlogc@0123456789ab"}
	attempt := func(ip string, state gozzard.AttemptState, action gozzard.Action, o gozzard.Outcome) gozzard.Attempt {
		return gozzard.Attempt{Agent: agent, Addr: addr(0, ip), Key: key, Action: action, Spec: spec, State: state,
			Outcome:   o,
			ResultKey: path + "/bk_gse_unifyTlogc:0:" + ip, Labels: map[string]string{"func_id": "7"}}
	}

	const ok, failed, not = gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptNotExecuted
	const start, stop, query = gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionQuery

	task := func(n int, door string, attempts ...gozzard.Attempt) record.TaskResults {
		return record.TaskResults{Task: gozzard.Task{ID: gozzard.TaskID(fmt.Sprint("20180315180551:", n)),
			Caller: gozzard.Caller{App: "esb_test"}, Door: door}, Attempts: attempts}
	}

	down := &gozzard.Detail{PID: -1, ReportedAt: 1522806980, ZoneOffset: 8 * 3600}
	up := &gozzard.Detail{PID: 4437, Hosted: true, Cmdline: "bk_gse_unifyTlogc -c x.conf", CPU: 0.5, Mem: 1.5,
		MemKB: 2048, Stat: "S", UTime: 3, STime: 4, Threads: 5,
		StartedAt: 1522806900, Elapsed: 80, ReportedAt: 1522806980, ZoneOffset: 8 * 3600}
	out := map[gozzard.TaskID]record.TaskResults{}
	for _, t := range []record.TaskResults{
		task(1, "job.operate_proc", attempt("10.0.0.1", ok, query,
			gozzard.Outcome{Code: gozzard.CodeOK, Detail: down})),
		task(2, "job.operate_process", attempt("10.0.0.1", ok, query,
			gozzard.Outcome{Code: gozzard.CodeOK, Detail: up}),
			attempt("10.0.0.2", not, query, gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "offline"})),
		task(3, "job.operate_proc", attempt("10.0.0.1", ok, start, gozzard.Outcome{Code: gozzard.CodeOK, Hosted: true}),
			attempt("10.0.0.2", gozzard.AttemptDispatched, start, gozzard.Outcome{})),
		task(4, "job.operate_proc", attempt("10.0.0.1", failed, stop, gozzard.Outcome{Code: gozzard.CodeNotRunning}),
			attempt("10.0.0.2", failed, stop, gozzard.Outcome{Code: gozzard.CodeCommandFailed,
				Message: "./stop.sh: not found"}),
			attempt("10.0.0.3", not, stop, gozzard.Outcome{Code: gozzard.CodeRefused,
				Message: "cmd_shell_ext bat is for windows, this host has linux"})),
		task(5, "gse.multi", attempt("10.0.0.1", ok, start, gozzard.Outcome{Code: gozzard.CodeOK})),
	} {
		out[t.Task.ID] = t
	}

	return out
}
