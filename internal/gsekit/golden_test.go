package gsekit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/rollout"
	"github.com/gozzard/gozzard/internal/topology"
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

// golden is one request with what the parts behind the door are asked for it and what is answered.
type golden struct {
	About   string            `json:"about"`
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Asked   []string          `json:"asked,omitempty"`
	Status  int               `json:"status"`
	Answer  json.RawMessage   `json:"answer"`
}

var costTime = regexp.MustCompile(`"cost_time":[0-9.]+`)

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g golden
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}
			r := newRig(t)
			status, answer := g.send(t, r)
			var asked []string
			asked = append(append(append(asked, r.flushed...), r.plane.calls...), r.jobs.calls...)
			if *update {
				g.Asked, g.Status, g.Answer = asked, status, answer
				if err := os.WriteFile(file, append(pretty(t, g), '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if status != g.Status {
				t.Errorf("HTTP %d, want %d", status, g.Status)
			}
			if d := cmp.Diff(string(pretty(t, g.Answer)), string(pretty(t, answer))); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
			if d := cmp.Diff(g.Asked, asked); d != "" {
				t.Errorf("asked (-want +got):\n%s", d)
			}
		})
	}
}

func (g *golden) send(t *testing.T, r *rig) (int, json.RawMessage) {
	t.Helper()
	method := g.Method
	if method == "" {
		method = http.MethodPost
	}
	req := httptest.NewRequest(method, g.Path, bytes.NewReader(g.Body))
	for k, v := range g.Headers {
		req.Header.Set(k, v)
	}
	if !r.Owns(req) {
		t.Fatalf("%s is not owned", g.Path)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	id := w.Header().Get("X-Bkapi-Request-Id")
	body := bytes.ReplaceAll(bytes.TrimSpace(w.Body.Bytes()), []byte(id), []byte(strings.Repeat("0", 32)))
	return w.Code, costTime.ReplaceAll(body, []byte(`"cost_time":0`))
}

func pretty(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// The jobs of these tests.

func someJobs() []rollout.Job {
	at := time.Date(2020, 12, 3, 2, 12, 36, 80806000, time.UTC)
	return []rollout.Job{
		{ID: 160, Biz: 2, Action: gozzard.ActionKill, Caller: gozzard.Caller{App: "admin", User: "cli"}, Expression: "*.*.*.*.*", Granularity: rollout.ByHost,
			State: rollout.Running, Started: at.Add(time.Hour)},
		{ID: 159, Biz: 2, Action: gozzard.ActionStop, Caller: gozzard.Caller{App: "bk_sops", User: "bob"}, Expression: "nothing.*.*.*.*", Granularity: rollout.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","is_expression":true},"expression_scope":{"bk_set_env":"3","bk_set_name":"nothing"}}`),
			State:   rollout.Failed, Reason: rollout.ReasonNothing, Started: at.Add(time.Minute), Ended: at.Add(time.Minute)},
		{ID: 158, Biz: 2, Action: gozzard.ActionStart, Caller: gozzard.Caller{App: "bk_sops", User: "admin"}, Expression: "管控平台.*.*.*.*", Granularity: rollout.ByBusiness,
			Request: []byte(`{"scope":{"bk_set_env":"3","bk_set_ids":[5]},"expression_scope":{"bk_set_env":"3","bk_set_name":"管控平台"}}`),
			State:   rollout.Failed, Started: at, Ended: at.Add(2*time.Minute + 5*time.Second)},
		{ID: 157, Biz: 3, Action: gozzard.ActionStart, State: rollout.Succeeded, Started: at, Ended: at},
	}
}

func addr(ip string) gozzard.HostAddr { return gozzard.HostAddr{IP: netip.MustParseAddr(ip)} }

// someTasks has a task for every way to end and not to.
func someTasks() []rollout.Task {
	at := time.Date(2020, 12, 3, 2, 12, 37, 0, time.UTC)
	info := []byte(`{"set":{"bk_set_id":5,"bk_set_env":"3","bk_set_name":"管控平台"},"host":{"bk_cloud_id":0,"bk_host_innerip":"127.0.0.1","bk_host_innerip_v6":"","bk_agent_id":""}}`)
	task := func(id int64, process int, state rollout.State) rollout.Task {
		return rollout.Task{ID: id, Job: 158, Biz: 2, Process: process, Name: "gse_agent", Set: 5, Module: 21, Local: 1, Inst: 1,
			Key: topology.Key(2, "gse_agent", 1), State: state, Info: info}
	}
	failed := func(id int64, reason rollout.Reason, code gozzard.Code, message string) rollout.Task {
		t := task(id, 46, rollout.Failed)
		t.Reason, t.Code, t.Message, t.Task, t.Started, t.Ended = reason, code, message, taskID, at, at.Add(time.Second)
		return t
	}
	done, going, ignored := task(401, 46, rollout.Succeeded), task(402, 46, rollout.Running), failed(403, rollout.ReasonVerdict, gozzard.CodeNotRunning, "no need to stop")
	done.Task, done.Started, done.Ended = taskID, at, at.Add(time.Second)
	going.Task, going.Started = taskID, at
	ignored.State, ignored.Reason, ignored.Code = rollout.Ignored, "", ""
	waiting := task(404, 48, rollout.Pending)
	waiting.Name, waiting.Module, waiting.Info = "java", 22, nil
	waiting.Addr = addr("10.0.0.2")
	return []rollout.Task{
		done, going, ignored, waiting,
		failed(405, rollout.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(406, rollout.ReasonVerdict, gozzard.CodeAlreadyRunning, "no need to start the process"),
		failed(407, rollout.ReasonMissing, "", "start_cmd, user"),
		failed(408, rollout.ReasonEarlier, "", "priority 1: process 46 failed"),
		failed(409, rollout.ReasonTimeout, "", ""),
	}
}
