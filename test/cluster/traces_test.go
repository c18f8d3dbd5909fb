//go:build linux

package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// traced sends an operation of the GSE door as a caller that traces it, and returns its task and the id of the trace.
func (m *member) traced(n int, op int, d *ft.Daemon, ip string) (task, trace string) {
	m.i.t.Helper()
	trace = fmt.Sprintf("0af7651916cd43dd8448eb22%08x", n)
	ans, err := m.TryWith("/api/c/compapi/v2/gse/operate_proc/", ft.J{"meta": ft.J{"namespace": "shop", "name": d.Name}, "op_type": op,
		"hosts": []ft.J{host(ip)}, "spec": d.Spec(nil)}, http.Header{"Traceparent": {"00-" + trace + "-b7ad6b7169203331-01"}})
	var data struct {
		Task string `json:"task_id"`
	}
	if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &data) != nil {
		m.i.t.Fatalf("operate_proc at %s: %v %s", m.listen, err, ans.Raw)
	}
	return data.Task, trace
}

// TestTraceThroughTwoServers: an operation that comes in at one server, on a host of another one, is one trace. The server of the
// request sends the spans of the request, the server of the host those of the delivery and the verdict.
func TestTraceThroughTwoServers(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	i := newInstallation(t, 2, "--otlp-endpoint", c.URL)
	const ip = "127.0.0.31"
	agent := i.servers[1].join(ip)
	d := ft.NewDaemon(t, t.TempDir(), "traced-far")
	for _, m := range i.servers {
		m.online(ip, true)
	}

	senders := map[string]bool{}
	for n, m := range []*member{i.servers[0], i.servers[1], i.servers[0]} {
		home := i.homeOf(agent)
		task, trace := m.traced(n, n%2, d, ip)
		for key, e := range m.Await(task) {
			if e.Code != 0 {
				t.Errorf("%s: %d %s", key, e.Code, e.Msg)
			}
		}
		spans := c.Await(trace, 7)
		action := []string{"start", "stop"}[n%2]
		request, whole := spans["POST /api/c/compapi/v2/gse/operate_proc"], spans[action]
		for name, parent := range map[string]string{request.Name: "b7ad6b7169203331", "accept": request.ID, action: request.ID,
			"wait": whole.ID, "deliver": whole.ID, "execute": whole.ID, "verdict": whole.ID} {
			if s, ok := spans[name]; !ok || s.Parent != parent || s.Attrs["gozzard.estimated"] != nil {
				t.Errorf("operation %d: the span %q is there: %t, %+v, expected below %s", n, name, ok, s, parent)
			}
		}
		if whole.Attrs["gozzard.verdict"] != "ok" || whole.Failed || len(c.Spans(trace)) != 7 {
			t.Errorf("operation %d: %+v in %d spans", n, whole, len(c.Spans(trace)))
		}
		if far := home != m; (request.Sender != whole.Sender) != far {
			t.Errorf("operation %d: far %t, the request is from %s, the operation from %s", n, far, request.Sender, whole.Sender)
		}
		senders[request.Sender], senders[whole.Sender] = true, true
	}
	if len(senders) != 2 {
		t.Errorf("the senders are %v", senders)
	}
}

// TestTraceOfAServerThatDies: the server of a host is killed while an operation runs there. The server that the agent goes to
// records the verdict, and its spans belong to the trace of the request. Each is there once.
func TestTraceOfAServerThatDies(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	i := newInstallation(t, 3, "--otlp-endpoint", c.URL)
	const ip = "127.0.0.32"
	agent := i.servers[1].join(ip)
	ft.Until(t, time.Minute, agent.Output, func() bool { return i.knownTo(agent) == 3 })
	for _, m := range i.servers {
		m.online(ip, true)
	}
	home := i.homeOf(agent)
	entry := i.servers[0]
	if entry == home {
		entry = i.servers[2]
	}

	// The start command waits until the server is dead.
	d := ft.NewDaemon(t, t.TempDir(), "traced-dead")
	begun, dead := filepath.Join(d.Dir, "begun"), filepath.Join(d.Dir, "dead")
	d.Script("start.sh", "touch "+begun+"\nwhile ! [ -e "+dead+" ]; do sleep 0.1; done\nsetsid ./"+d.Name+
		" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
	task, trace := entry.traced(10, 0, d, ip)
	ft.Until(t, time.Minute, agent.Output, func() bool { _, err := os.Stat(begun); return err == nil })
	home.Kill(syscall.SIGKILL)
	ft.Until(t, time.Minute, agent.Output, func() bool { m := i.homeOf(agent); return m != nil && m != home })
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for key, e := range entry.Await(task) {
		if e.Code != 0 {
			t.Errorf("%s: %d %s", key, e.Code, e.Msg)
		}
	}

	spans := c.Await(trace, 5) // what only the dead server saw is missing
	request, whole := spans["POST /api/c/compapi/v2/gse/operate_proc"], spans["start"]
	if whole.Parent != request.ID || request.Parent != "b7ad6b7169203331" || whole.Attrs["gozzard.verdict"] != "ok" {
		t.Errorf("the operation is %+v, below the request %+v", whole, request)
	}
	for name, parent := range map[string]string{"accept": request.ID, "execute": whole.ID, "verdict": whole.ID} {
		if s, ok := spans[name]; !ok || s.Parent != parent {
			t.Errorf("the span %q is there: %t, %+v, expected below %s", name, ok, s, parent)
		}
	}
	count := map[string]int{}
	for _, s := range c.Spans(trace) {
		if count[s.Name]++; count[s.Name] > 1 {
			t.Errorf("%q is there twice", s.Name)
		}
	}
}
