//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gozzard/gozzard"
)

// namespace holds all processes of the benchmark.
const namespace = "bench"

// caller calls a server as BlueKing clients do.
type caller struct {
	base string
	auth string // value of X-Bkapi-Authorization
	http *http.Client
}

// newCaller reads the credentials file, which has the URL too.
func newCaller(credentials []byte) (*caller, error) {
	var c map[string]string
	if err := json.Unmarshal(credentials, &c); err != nil {
		return nil, fmt.Errorf("cannot read credentials: %w", err)
	}

	base := c["url"]
	delete(c, "url")
	auth, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}

	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	return &caller{base: base, auth: string(auth),
		http: &http.Client{Transport: transport, Timeout: 2 * time.Minute}}, nil
}

func (c *caller) get(ctx context.Context, path string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, path, nil)
}

func (c *caller) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	req.Header.Set("X-Bkapi-Authorization", c.auth)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}

	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: HTTP %d %.300s", path, res.StatusCode, text)
	}

	return text, nil
}

// ask calls an endpoint of the process API. The returned time ends when the answer is read, before it is decoded.
func (c *caller) ask(ctx context.Context, name string, body []byte, data any) (time.Duration, error) {
	began := time.Now()
	text, err := c.do(ctx, http.MethodPost, "/api/c/compapi/v2/gse/"+name+"/", body)
	took := time.Since(began)

	if err != nil {
		return took, err
	}

	var envelope struct {
		Result  bool
		Message string
		Data    json.RawMessage
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return took, fmt.Errorf("%s: %w in %.300s", name, err, text)
	}
	if !envelope.Result {
		return took, fmt.Errorf("%s: %s", name, envelope.Message)
	}
	if err := json.Unmarshal(envelope.Data, data); err != nil {
		return took, fmt.Errorf("%s: %w in %.300s", name, err, envelope.Data)
	}

	return took, nil
}

// counts are the numbers of verdicts of a task.
type counts struct{ Targets, Done, Failed, Running int }

// operate sends an operation and waits for its verdicts. accepted is the time until the task is durable. settled is the
// time from then until all its verdicts are durable and read.
func (c *caller) operate(ctx context.Context, body []byte) (accepted, settled time.Duration, n counts, err error) {
	var task struct {
		ID string `json:"task_id"`
	}
	if accepted, err = c.ask(ctx, "operate_proc_v2", body, &task); err != nil {
		return 0, 0, n, err
	}

	began := time.Now()
	for {
		text, err := c.get(ctx, "/api/v1/tasks/"+url.PathEscape(task.ID)+"?wait=30s&show=none")
		if err != nil {
			return 0, 0, n, err
		}
		var t struct {
			Final  bool
			Counts counts
		}
		if err := json.Unmarshal(text, &t); err != nil {
			return 0, 0, n, fmt.Errorf("task %s: %w", task.ID, err)
		}
		if t.Final || time.Since(began) > time.Minute {
			return accepted, time.Since(began), t.Counts, nil
		}
	}
}

// definition is the process that the benchmark operates. Its commands and paths are as long as real ones.
func definition(name string) gozzard.Spec {
	dir := "/data/bench/" + name
	return gozzard.Spec{
		Identity: gozzard.Identity{ProcName: name, SetupPath: dir, PIDPath: dir + "/" + name + ".pid", User: "root"},
		Control: gozzard.Control{
			Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh", Reload: "./reload.sh", Kill: "./kill.sh",
			Version: "./version.sh",
		},
		Resource: gozzard.Resource{CPU: 50, Mem: 50},
		Policy:   gozzard.DefaultPolicy(),
	}
}

// request is the body of a call about one process on several hosts. A negative op is left out.
func request(name string, op int, hosts []host) ([]byte, error) {
	s := definition(name)
	body := map[string]any{
		"meta":  map[string]any{"namespace": namespace, "name": name, "labels": map[string]string{"proc_name": name}},
		"hosts": hosts,
		"spec": map[string]any{
			"identity": s.Identity, "control": s.Control, "resource": s.Resource,
			"monitor_policy": map[string]any{"auto_type": 1},
		},
	}

	if op >= 0 {
		body["op_type"] = op
	}

	return json.Marshal(body)
}

// opReload does not change the process, so the benchmark can repeat it without end.
const opReload = 8
