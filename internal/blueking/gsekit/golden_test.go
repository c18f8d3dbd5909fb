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
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
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

// timeless removes the durations from the answers of a door.
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

func someJobs() []record.Job {
	at := time.Date(2020, 12, 3, 2, 12, 36, 80806000, time.UTC)
	return []record.Job{
		{ID: 160, Biz: 2, Action: gozzard.ActionKill, Caller: gozzard.Caller{App: "admin", User: "cli"},
			Expression: "*.*.*.*.*", Granularity: record.ByHost,
			State: record.JobRunning, Started: at.Add(time.Hour)},
		{ID: 159, Biz: 2, Action: gozzard.ActionStop, Caller: gozzard.Caller{App: "bk_sops", User: "bob"},
			Expression: "nothing.*.*.*.*", Granularity: record.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","is_expression":true},"expression_scope":{"bk_set_env":"3","bk_set_name":"nothing"}}`),
			State:   record.JobFailed, Reason: record.ReasonNothing, Started: at.Add(time.Minute),
			Ended: at.Add(time.Minute)},
		{ID: 158, Biz: 2, Action: gozzard.ActionStart, Caller: gozzard.Caller{App: "bk_sops", User: "admin"},
			Expression: "管控平台.*.*.*.*", Granularity: record.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","bk_set_ids":[5]},"expression_scope":{"bk_set_env":"3","bk_set_name":"管控平台"}}`),
			State:   record.JobFailed, Started: at, Ended: at.Add(2*time.Minute + 5*time.Second)},
		{ID: 157, Biz: 3, Action: gozzard.ActionStart, State: record.JobSucceeded, Started: at, Ended: at},
	}
}

func addr(ip string) gozzard.HostAddr { return gozzard.HostAddr{IP: netip.MustParseAddr(ip)} }

// someTasks has a task for every final state, and one for every state before it.
func someTasks() []record.JobTask {
	at := time.Date(2020, 12, 3, 2, 12, 37, 0, time.UTC)
	info := []byte(`{"set":{"bk_set_id":5,"bk_set_env":"3","bk_set_name":"管控平台"},"host":{"bk_cloud_id":0,"bk_host_innerip":"127.0.0.1","bk_host_innerip_v6":"","bk_agent_id":""}}`)
	task := func(id int64, process int, state record.JobState) record.JobTask {
		return record.JobTask{ID: id, Job: 158, Biz: 2, Process: process, Name: "gse_agent", Set: 5, Module: 21,
			Local: 1, Inst: 1,
			Key: topology.Key(2, "gse_agent", 1), State: state, Info: info}
	}

	failed := func(id int64, reason record.JobReason, code gozzard.Code, message string) record.JobTask {
		t := task(id, 46, record.JobFailed)
		t.Reason, t.Code, t.Message, t.Task, t.Started, t.Ended = reason, code, message, taskID, at, at.Add(time.Second)
		return t
	}

	done, going, ignored := task(401, 46, record.JobSucceeded), task(402, 46, record.JobRunning),
		failed(403, record.ReasonVerdict, gozzard.CodeNotRunning, "no need to stop")
	done.Task, done.Started, done.Ended = taskID, at, at.Add(time.Second)
	going.Task, going.Started = taskID, at
	ignored.State, ignored.Reason, ignored.Code = record.JobIgnored, "", ""
	waiting := task(404, 48, record.JobPending)
	waiting.Name, waiting.Module, waiting.Info = "java", 22, nil
	waiting.Addr = addr("10.0.0.2")
	return []record.JobTask{
		done, going, ignored, waiting,
		failed(405, record.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(406, record.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(407, record.ReasonMissing, "", "start_cmd, user"),
		failed(408, record.ReasonEarlier, "", "priority 1: process 46 failed"),
		failed(409, record.ReasonTimeout, "", ""),
	}
}
