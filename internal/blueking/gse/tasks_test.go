package gse_test

import (
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

func nginx() []byte {
	return gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "nginx", SetupPath: "/usr/sbin",
		PIDPath: "/run/nginx-1.pid", User: "root"}})
}

func detail() *gozzard.Detail {
	return &gozzard.Detail{
		PID: 4437, Hosted: true, Cmdline: "nginx -c /etc/nginx/nginx-1.conf", Version: "1.2.19", Health: "ok",
		CPU: 0.5, CPUAvg: 0.25, Mem: 1.5, MemKB: 2048,
		Stat: "S", UTime: 3, STime: 4, Threads: 5, StartedAt: 1495610748, Elapsed: 12, RegisteredAt: 1441006057,
		LastStart: 1441006058, ReportedAt: 1522835780,
		ZoneOffset: 8 * 3600,
	}
}

// tasks are the tasks that polls find, by the case that each one shows.
func tasks() map[gozzard.TaskID]record.TaskResults {
	key := gozzard.Key{Namespace: "GSEKIT_BIZ_3", Name: "nginx_1"}
	attempt := func(state gozzard.AttemptState, action gozzard.Action, o gozzard.Outcome) gozzard.Attempt {
		return gozzard.Attempt{Agent: agentB, Addr: addr(0, "10.0.0.3"), Key: key, Action: action, Spec: nginx(),
			State: state, Outcome: o}
	}

	const ok, failed, not, cut, unknown = gozzard.AttemptOK, gozzard.AttemptFailed, gozzard.AttemptNotExecuted,
		gozzard.AttemptInterrupted, gozzard.AttemptUnknown
	const start, stop, query = gozzard.ActionStart, gozzard.ActionStop, gozzard.ActionQuery
	type result struct {
		name string
		gozzard.Attempt
	}
	verdicts := []result{
		{"pending", attempt(gozzard.AttemptPending, start, gozzard.Outcome{})},
		{"dispatched", attempt(gozzard.AttemptDispatched, query, gozzard.Outcome{})},
		{"started", attempt(ok, start, gozzard.Outcome{Code: gozzard.CodeOK, Hosted: true})},
		{"stopped", attempt(ok, stop, gozzard.Outcome{Code: gozzard.CodeOK})},
		{"already running", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeAlreadyRunning,
			Message: "pid 4437", Hosted: true})},
		{"not running", attempt(failed, stop, gozzard.Outcome{Code: gozzard.CodeNotRunning, Hosted: true})},
		{"unknown op", attempt(not, gozzard.ActionNone,
			gozzard.Outcome{Code: gozzard.CodeUnknownAction, Message: "op_type 5 is no operation"})},
		{"start check", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeCheckFailed,
			Message: "bind: address in use"})},
		{"stop check", attempt(failed, stop, gozzard.Outcome{Code: gozzard.CodeCheckFailed})},
		{"kill check", attempt(failed, gozzard.ActionKill, gozzard.Outcome{Code: gozzard.CodeCheckFailed})},
		{"command", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeCommandFailed,
			Message: "no such config <网关>\nexit 3"})},
		{"command silent", attempt(failed, gozzard.ActionReload, gozzard.Outcome{Code: gozzard.CodeCommandFailed})},
		{"refused", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeRefused,
			Message: "account root not allowed by local policy"})},
		{"no definition", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeNoDefinition})},
		{"offline", attempt(not, stop, gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "offline since noon"})},
		{"offline query", attempt(not, query, gozzard.Outcome{Code: gozzard.CodeUnreachable})},
		{"expired", attempt(not, start, gozzard.Outcome{Code: gozzard.CodeExpired})},
		{"superseded", attempt(not, start, gozzard.Outcome{Code: gozzard.CodeSuperseded})},
		{"cancelled", attempt(not, start, gozzard.Outcome{Code: gozzard.CodeCancelled})},
		{"interrupted", attempt(cut, start, gozzard.Outcome{Code: gozzard.CodeInterrupted})},
		{"interrupted query", attempt(cut, query, gozzard.Outcome{})},
		{"unknown", attempt(unknown, start, gozzard.Outcome{})},
		{"failed ok", attempt(failed, start, gozzard.Outcome{Code: gozzard.CodeOK})},
		{"failed strange", attempt(failed, start, gozzard.Outcome{Code: "from_the_future"})},
		{"queried", attempt(ok, query, gozzard.Outcome{Code: gozzard.CodeOK, Detail: detail()})},
		{"queried stopped", attempt(ok, query, gozzard.Outcome{Code: gozzard.CodeOK,
			Detail: &gozzard.Detail{PID: -1, Hosted: true, RegisteredAt: 5, ReportedAt: 6, Stat: "S", Threads: 3}})},
		{"queried zero", attempt(ok, query, gozzard.Outcome{Code: gozzard.CodeOK, Detail: &gozzard.Detail{}})},
		{"queried without detail", attempt(ok, query, gozzard.Outcome{Code: gozzard.CodeOK})},
		{"queried unregistered", attempt(failed, query, gozzard.Outcome{Code: gozzard.CodeNoDefinition})},
	}
	out := map[gozzard.TaskID]record.TaskResults{}
	add := func(n int, door, app string, attempts ...gozzard.Attempt) {
		id := gozzard.TaskID(fmt.Sprintf("20190813145456:%d", n))
		out[id] = record.TaskResults{Task: gozzard.Task{ID: id, Door: door, Caller: gozzard.Caller{App: app},
			At: time.UnixMilli(1632830304777)},
			Attempts: attempts}
	}

	var all []gozzard.Attempt
	for _, v := range verdicts {
		v.ResultKey = v.name
		all = append(all, v.Attempt)
	}

	add(1, "gse.v1", "bk_gsekit", all...)
	add(2, "gse.v2", "bk_gsekit", all...)
	add(3, "gse.v1", "someone_else", all[0])

	plugin := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "host_exp002",
		SetupPath: "/usr/local/gse/external_plugins/sub_870_host_1/host_exp002"}})
	g4 := attempt(ok, start, gozzard.Outcome{Code: gozzard.CodeOK, Hosted: true})
	g4.Key, g4.Spec, g4.ResultKey = gozzard.Key{Namespace: "nodeman", Name: "sub_870_host_1_host_exp002"}, plugin,
		"0:0:127.0.0.1:nodeman:sub_870_host_1_host_exp002"
	add(4, "gse.v1", "bk_gsekit", g4)
	g5 := g4
	g5.State, g5.Outcome = gozzard.AttemptDispatched, gozzard.Outcome{}
	add(5, "gse.v1", "bk_gsekit", g5)
	g14 := all[5]
	g14.ResultKey = agentB + ":GSEKIT_BIZ_3:nginx_1"
	add(14, "gse.multi", "bk_gsekit", g14)
	g15 := attempt(ok, query, gozzard.Outcome{Code: gozzard.CodeOK, Detail: &gozzard.Detail{PID: 1234, Hosted: true}})
	g15.ResultKey = g14.ResultKey
	add(15, "gse.multi", "bk_gsekit", g15)
	bare := attempt(not, start, gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "the agent id is empty"})
	bare.Agent, bare.Addr, bare.Spec, bare.ResultKey = "", gozzard.HostAddr{}, nil, ":test-namespace:test-process"
	add(17, "gse.multi", "bk_gsekit", bare)

	script := attempt(failed, gozzard.ActionScript, gozzard.Outcome{Code: gozzard.CodeCommandFailed, Script: &gozzard.ScriptResult{
		Steps: []gozzard.StepResult{
			{ID: 0, State: gozzard.StepOK, Output: "one\n", LeftOut: 7, Began: 1632830304777, Ended: 1632830304999},
			{ID: 1, State: gozzard.StepTimeout, Exit: -1, Message: "its time was over", Output: "two\n", Began: 1632830305000,
				Ended: 1632830306000},
			{ID: 2, State: gozzard.StepSkipped, Exit: -1, Message: "not run: step 1 did not succeed"},
		}}})
	script.ResultKey = agentB
	add(90, "gse.script", "bk_gsekit", script)

	web := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{User: "nobody"}, File: &gozzard.FileSpec{Path: "/data/app/web.conf",
		Mode: "0640", Size: 5, Source: &gozzard.FileSource{Host: agentA, Path: "/data/repo/web.conf"}}})
	file := func(host string, a gozzard.Attempt) gozzard.Attempt {
		a.Key, a.Spec, a.ResultKey = gozzard.FileKey("gse-task", "/data/app/web.conf"), web, host
		return a
	}
	const transfer = gozzard.ActionTransfer
	none := file(agentE, attempt(not, transfer, gozzard.Outcome{Code: gozzard.CodeRefused, Message: "nothing was written"}))
	none.Spec = nil
	add(91, "gse.transfer", "bk_gsekit", file(agentB, attempt(ok, transfer, gozzard.Outcome{Code: gozzard.CodeOK})),
		file(agentC, attempt(gozzard.AttemptDispatched, transfer, gozzard.Outcome{})),
		file(agentD, attempt(not, transfer, gozzard.Outcome{Code: gozzard.CodeUnreachable, Message: "offline since noon"})),
		none)
	return out
}
