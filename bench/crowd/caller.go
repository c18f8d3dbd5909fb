//go:build linux

package crowd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
	"github.com/gozzard/gozzard/test/sim"
)

// Caller calls a server as its first app.
type Caller struct {
	Base string // URL of the API
	http *http.Client
	auth string
}

// ReadCaller reads the credentials that a server wrote. at is the URL of another server of the same installation; "": this
// one.
func ReadCaller(path, at string) (*Caller, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c server.Credentials
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.CA))
	caller := &Caller{Base: c.URL, http: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64,
		TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	if at != "" {
		caller.Base = at
	}
	c.URL, c.CA = "", ""
	auth, err := json.Marshal(c)
	caller.auth = string(auth)
	return caller, err
}

// Call sends a request.
func (c *Caller) Call(ctx context.Context, method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Bkapi-Authorization", c.auth)
	r.Header.Set("Content-Type", "application/json")

	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: HTTP %d %.300s", path, answer.StatusCode, text)
	}
	return text, err
}

// Get reads an answer.
func (c *Caller) Get(ctx context.Context, path string, into any) error {
	text, err := c.Call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Count is the number of rows of a list.
func (c *Caller) Count(ctx context.Context, list string) (int, error) {
	var page struct{ Count int }
	err := c.Get(ctx, list, &page)
	return page.Count, err
}

// AwaitCount waits until a list has at least so many rows.
func (c *Caller) AwaitCount(ctx context.Context, limit time.Duration, list string, n int, needs ...*child.Process) error {
	return child.Until(ctx, limit, list, func() (bool, error) {
		count, err := c.Count(ctx, list)
		if err != nil || count >= n {
			return err == nil, err
		}
		time.Sleep(200 * time.Millisecond) // each look costs the server something
		return false, fmt.Errorf("%d of %d are known", count, n)
	}, needs...)
}

// Messages counts the messages of agents and to agents so far.
func (c *Caller) Messages(ctx context.Context) (in, out float64, err error) {
	text, err := c.Call(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64) // comments have none
		switch name {
		case `gozzard_fabric_messages_total{what="results"}`, `gozzard_fabric_messages_total{what="statuses"}`:
			in += n
		case `gozzard_fabric_messages_total{what="sent"}`:
			out += n
		}
	}
	return in, out, nil
}

// Operations. A reload does not change a process, so it can be repeated without end.
const (
	OpStart  = 0
	OpReload = 8
)

// Request is an operation on a process of the first hosts.
func Request(key gozzard.Key, op, hosts int) map[string]any {
	list := make([]map[string]any, hosts)
	for i := range list {
		list[i] = map[string]any{"ip": sim.Addr(0, i).IP.String(), "bk_cloud_id": 0}
	}
	name := key.Name
	dir := "/data/bench/" + name
	return map[string]any{
		"meta":    map[string]any{"namespace": key.Namespace, "name": name, "labels": map[string]string{"proc_name": name}},
		"hosts":   list,
		"op_type": op,
		"spec": map[string]any{
			"identity": gozzard.Identity{ProcName: name, SetupPath: dir, PIDPath: dir + "/" + name + ".pid", User: "root"},
			"control": gozzard.Control{Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh",
				Reload: "./reload.sh", Kill: "./kill.sh"},
			"resource":       gozzard.Resource{CPU: 50, Mem: 50},
			"monitor_policy": map[string]any{"auto_type": 1},
		},
	}
}

// RegisterAll registers and starts processes on the first host.
func (c *Caller) RegisterAll(ctx context.Context, keys []gozzard.Key, agent *child.Process) error {
	if err := c.AwaitCount(ctx, 4*time.Minute, "/api/v1/hosts?limit=1", 1, agent); err != nil {
		return err
	}
	for _, key := range keys {
		body := Request(key, OpStart, 1)
		err := child.Until(ctx, time.Minute, "the first host", func() (bool, error) {
			text, err := c.Call(ctx, http.MethodPost, "/api/c/compapi/v2/gse/operate_proc_v2/", body)
			if err != nil {
				return false, err
			}
			var answer struct {
				Result  bool
				Message string
			}
			if err := json.Unmarshal(text, &answer); err != nil {
				return false, err
			}
			return answer.Result, fmt.Errorf("%s", answer.Message)
		}, agent)
		if err != nil {
			return err
		}
	}
	return nil
}

// Reload begins a task that reloads processes on the first hosts. It returns when the task is accepted.
func (c *Caller) Reload(ctx context.Context, keys []gozzard.Key, hosts int) (task string, accepted time.Duration, err error) {
	var reqs []map[string]any
	for _, key := range keys {
		reqs = append(reqs, Request(key, OpReload, hosts))
	}
	began := time.Now()
	text, err := c.Call(ctx, http.MethodPost, "/api/c/compapi/v2/gse/operate_proc_multi/", map[string]any{"proc_operate_req": reqs})
	if err != nil {
		return "", 0, err
	}
	accepted = time.Since(began)
	var answer struct {
		Message string
		Data    struct {
			Task string `json:"task_id"`
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Data.Task == "" {
		return "", 0, errors.Join(fmt.Errorf("the task was not accepted: %s", answer.Message), err)
	}
	return answer.Data.Task, accepted, nil
}

// Incomplete is a task that ended with operations that did not succeed.
type Incomplete struct{ Done, Targets int }

func (i *Incomplete) Error() string {
	return fmt.Sprintf("only %d of %d operations succeeded", i.Done, i.Targets)
}

// AwaitTask waits until all operations of a task have succeeded. If some have not, it returns an *Incomplete.
func (c *Caller) AwaitTask(ctx context.Context, id string, targets int) error {
	for {
		var task client.Task
		if err := c.Get(ctx, "/api/v1/tasks/"+url.PathEscape(id)+"?wait=30s&show=none", &task); err != nil {
			return err
		}
		if task.Final && task.Counts.Done != targets {
			return &Incomplete{task.Counts.Done, targets}
		}
		if task.Final {
			return nil
		}
	}
}
