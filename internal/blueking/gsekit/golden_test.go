package gsekit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/internal/waves"
	"github.com/gozzard/gozzard/test/goldentest"
)

var costTime = regexp.MustCompile(`"cost_time":[0-9.]+`)

func TestGolden(t *testing.T) {
	goldentest.Run(t, 20, func(t *testing.T) (http.Handler, func() any) {
		r := newRig(t)
		return timeless{t, r}, func() any {
			return append(append(append([]string(nil), r.flushed...), r.plane.calls...), r.jobs.calls...)
		}
	})
}

// timeless is a door whose answers do not say how long they took.
type timeless struct {
	t *testing.T
	r *rig
}

func (d timeless) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !d.r.Owns(req) {
		d.t.Errorf("%s is not owned", req.URL.Path)
	}
	rec := httptest.NewRecorder()
	d.r.ServeHTTP(rec, req)
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	if _, err := w.Write(costTime.ReplaceAll(rec.Body.Bytes(), []byte(`"cost_time":0`))); err != nil {
		d.t.Error(err)
	}
}

// The jobs of these tests.

func someJobs() []waves.Job {
	at := time.Date(2020, 12, 3, 2, 12, 36, 80806000, time.UTC)
	return []waves.Job{
		{ID: 160, Biz: 2, Action: gozzard.ActionKill, Caller: gozzard.Caller{App: "admin", User: "cli"}, Expression: "*.*.*.*.*", Granularity: waves.ByHost,
			State: waves.Running, Started: at.Add(time.Hour)},
		{ID: 159, Biz: 2, Action: gozzard.ActionStop, Caller: gozzard.Caller{App: "bk_sops", User: "bob"}, Expression: "nothing.*.*.*.*", Granularity: waves.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","is_expression":true},"expression_scope":{"bk_set_env":"3","bk_set_name":"nothing"}}`),
			State:   waves.Failed, Reason: waves.ReasonNothing, Started: at.Add(time.Minute), Ended: at.Add(time.Minute)},
		{ID: 158, Biz: 2, Action: gozzard.ActionStart, Caller: gozzard.Caller{App: "bk_sops", User: "admin"}, Expression: "管控平台.*.*.*.*", Granularity: waves.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","bk_set_ids":[5]},"expression_scope":{"bk_set_env":"3","bk_set_name":"管控平台"}}`),
			State:   waves.Failed, Started: at, Ended: at.Add(2*time.Minute + 5*time.Second)},
		{ID: 157, Biz: 3, Action: gozzard.ActionStart, State: waves.Succeeded, Started: at, Ended: at},
	}
}

func addr(ip string) gozzard.HostAddr { return gozzard.HostAddr{IP: netip.MustParseAddr(ip)} }

// someTasks has a task for every way to end and not to.
func someTasks() []waves.Task {
	at := time.Date(2020, 12, 3, 2, 12, 37, 0, time.UTC)
	info := []byte(`{"set":{"bk_set_id":5,"bk_set_env":"3","bk_set_name":"管控平台"},"host":{"bk_cloud_id":0,"bk_host_innerip":"127.0.0.1","bk_host_innerip_v6":"","bk_agent_id":""}}`)
	task := func(id int64, process int, state waves.State) waves.Task {
		return waves.Task{ID: id, Job: 158, Biz: 2, Process: process, Name: "gse_agent", Set: 5, Module: 21, Local: 1, Inst: 1,
			Key: topology.Key(2, "gse_agent", 1), State: state, Info: info}
	}
	failed := func(id int64, reason waves.Reason, code gozzard.Code, message string) waves.Task {
		t := task(id, 46, waves.Failed)
		t.Reason, t.Code, t.Message, t.Task, t.Started, t.Ended = reason, code, message, taskID, at, at.Add(time.Second)
		return t
	}
	done, going, ignored := task(401, 46, waves.Succeeded), task(402, 46, waves.Running), failed(403, waves.ReasonVerdict, gozzard.CodeNotRunning, "no need to stop")
	done.Task, done.Started, done.Ended = taskID, at, at.Add(time.Second)
	going.Task, going.Started = taskID, at
	ignored.State, ignored.Reason, ignored.Code = waves.Ignored, "", ""
	waiting := task(404, 48, waves.Pending)
	waiting.Name, waiting.Module, waiting.Info = "java", 22, nil
	waiting.Addr = addr("10.0.0.2")
	return []waves.Task{
		done, going, ignored, waiting,
		failed(405, waves.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(406, waves.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(407, waves.ReasonMissing, "", "start_cmd, user"),
		failed(408, waves.ReasonEarlier, "", "priority 1: process 46 failed"),
		failed(409, waves.ReasonTimeout, "", ""),
	}
}
