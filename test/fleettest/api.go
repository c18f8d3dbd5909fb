//go:build linux

package fleettest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

// API calls a server as a BlueKing client does.
type API struct {
	t      testing.TB
	Client *http.Client // nil for the default client
	Cred   struct {
		URL      string `json:"url"`
		AppCode  string `json:"bk_app_code"`
		Secret   string `json:"bk_app_secret"`
		Username string `json:"bk_username"`
	}
}

// J is a JSON object.
type J = map[string]any

// Answer is the envelope of every answer.
type Answer struct {
	Status    int         `json:"-"`
	Header    http.Header `json:"-"`
	Result    bool
	Code      int
	Message   string
	Data      json.RawMessage
	RequestID string `json:"request_id"`
	Raw       []byte `json:"-"`
}

// Entry is one entry of a result map.
type Entry struct {
	Code    int    `json:"error_code"`
	Msg     string `json:"error_msg"`
	Content string `json:"content"`
}

// For returns the same API with failures reported to another test.
func (a *API) For(t testing.TB) *API {
	b := *a
	b.t = t
	return &b
}

// Post sends raw bytes. It adds no credentials to body and header.
func (a *API) Post(path string, body []byte, header http.Header) (Answer, error) {
	req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(a.Cred.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}

	maps.Copy(req.Header, header)
	client := a.Client
	if client == nil {
		client = http.DefaultClient
	}

	res, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}

	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{}, err
	}

	ans := Answer{Status: res.StatusCode, Header: res.Header, Raw: raw}
	if err := json.Unmarshal(raw, &ans); err != nil {
		return ans, fmt.Errorf("%s: HTTP %d, not JSON: %.200q", path, res.StatusCode, raw)
	}

	return ans, nil
}

// Get sends a GET to our own API with the credentials in the header.
func (a *API) Get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	cred, err := json.Marshal(J{"bk_app_code": a.Cred.AppCode, "bk_app_secret": a.Cred.Secret,
		"bk_username": a.Cred.Username})
	if err != nil {
		t.Fatal(err)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(a.Cred.URL, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("X-Bkapi-Authorization", string(cred))
	client := a.Client
	if client == nil {
		client = http.DefaultClient
	}

	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}

	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}

	return res.StatusCode, string(b)
}

// Try calls an ESB endpoint with credentials in the body.
func (a *API) Try(name string, body J) (Answer, error) {
	return a.TryWith("/api/c/compapi/v2/gse/"+name+"/", body, nil)
}

// TryWith calls a path with credentials in the body and further headers.
func (a *API) TryWith(path string, body J, header http.Header) (Answer, error) {
	full := J{"bk_app_code": a.Cred.AppCode, "bk_app_secret": a.Cred.Secret, "bk_username": a.Cred.Username}
	maps.Copy(full, body)
	b, err := json.Marshal(full)
	if err != nil {
		return Answer{}, err
	}
	return a.Post(path, b, header)
}

// Call is Try that must get an answer.
func (a *API) Call(name string, body J) Answer {
	a.t.Helper()
	ans, err := a.Try(name, body)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return ans
}

// OK is Call that must succeed. The data is decoded into out unless that is nil.
func (a *API) OK(name string, body J, out any) {
	a.t.Helper()
	ans := a.Call(name, body)
	if ans.Status != 200 || !ans.Result || ans.Code != 0 {
		a.t.Fatalf("%s: HTTP %d %s", name, ans.Status, ans.Raw)
	}
	if out != nil {
		if err := json.Unmarshal(ans.Data, out); err != nil {
			a.t.Fatalf("%s: %v in %s", name, err, ans.Data)
		}
	}
}

// Operate sends an operation and returns its task.
func (a *API) Operate(name string, body J) string {
	a.t.Helper()
	var d struct {
		TaskID string `json:"task_id"`
	}
	a.OK(name, body, &d)
	if !strings.HasPrefix(d.TaskID, "GSETASK:") {
		a.t.Fatalf("%s: task id %q", name, d.TaskID)
	}
	return d.TaskID
}

// Results polls a task once.
func (a *API) Results(task string) map[string]Entry {
	a.t.Helper()
	out := map[string]Entry{}
	a.OK("get_proc_operate_result", J{"task_id": task}, &out)
	return out
}

// Await polls a task until no entry has code 115.
func (a *API) Await(task string) map[string]Entry {
	a.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for {
		out := a.Results(task)
		open := 0
		for _, e := range out {
			if e.Code == 115 {
				open++
			}
		}
		if open == 0 && len(out) > 0 {
			return out
		}
		if time.Now().After(end) {
			a.t.Fatalf("task %s: %d of %d entries still at 115", task, open, len(out))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Info is a row of the status calls.
type Info struct {
	Meta struct {
		Namespace, Name string
		Labels          map[string]string
	}
	Host struct {
		IP       string
		Cloud    int `json:"bk_cloud_id"`
		Supplier int `json:"bk_supplier_id"`
	}
	AgentID    string `json:"bk_agent_id"`
	Flag       int
	Status     int
	IsAuto     bool
	Message    string
	PID        int
	Version    string
	Registered int64   `json:"register_time"`
	LastStart  int64   `json:"last_start_time"`
	Reported   int64   `json:"report_time"`
	CPU        float64 `json:"cpu_usage"`
	Mem        float64 `json:"mem_usage"`
	FD         int
	Disk, Net  int64
}

// Status asks for one process on some hosts.
func (a *API) Status(ns, name string, hosts ...J) []Info {
	a.t.Helper()
	var d struct {
		Infos []Info `json:"proc_infos"`
	}
	a.OK("get_proc_status", J{"meta": J{"namespace": ns, "name": name}, "hosts": hosts}, &d)
	return d.Infos
}

// Host names 127.0.0.n in cloud 0 as V1 callers do.
func Host(n int) J {
	return J{"ip": fmt.Sprintf("127.0.0.%d", n), "bk_cloud_id": 0, "bk_supplier_id": 0}
}

func decode(b []byte, v any) bool { return json.Unmarshal(b, v) == nil }
