//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// traceNo makes the id of a trace and the headers of a caller that has it.
func traceNo(n int) (id string, h http.Header) {
	id = fmt.Sprintf("0af7651916cd43dd8448eb21%08x", n)
	return id, http.Header{"Traceparent": {"00-" + id + "-b7ad6b7169203331-01"}}
}

// nativeStart hands in an operation through the native API, with the headers of a caller. It returns the status, the answer and
// the headers.
func nativeOperation(t *testing.T, a *ft.API, body ft.J, h http.Header) (int, string, http.Header) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.Cred.URL+"/api/v1/operations", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range h {
		req.Header[name] = values
	}
	cred, _ := json.Marshal(ft.J{"bk_app_code": a.Cred.AppCode, "bk_app_secret": a.Cred.Secret, "bk_username": a.Cred.Username})
	req.Header.Set("X-Bkapi-Authorization", string(cred))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(res.Body)
	return res.StatusCode, text.String(), res.Header
}

// gseOperation is an operation through the GSE door, with the headers of a caller. It returns the verdicts.
func gseOperation(t *testing.T, a *ft.API, op int, spec ft.J, name string, h http.Header, hosts ...ft.J) map[string]ft.Entry {
	t.Helper()
	body := ft.J{"meta": ft.J{"namespace": "gse", "name": name}, "op_type": op, "hosts": hosts}
	if spec != nil {
		body["spec"] = spec
	}
	ans, err := a.TryWith("/api/c/compapi/v2/gse/operate_proc/", body, h)
	var data struct {
		Task string `json:"task_id"`
	}
	if err != nil || ans.Code != 0 || json.Unmarshal(ans.Data, &data) != nil {
		t.Fatalf("operate_proc: %v %s", err, ans.Raw)
	}
	return a.Await(data.Task)
}

// checkStages checks the spans of an operation on one process that was carried out: each stage once, below the right one, in
// the right order.
func checkStages(t *testing.T, spans map[string]ft.CollectedSpan, route, action, verdict string, failed bool) {
	t.Helper()
	request, whole := spans["POST "+route], spans[action]
	if !request.Server || request.Parent != "b7ad6b7169203331" || request.Attrs["http.route"] != route {
		t.Errorf("the request is %+v", request)
	}
	for name, parent := range map[string]ft.CollectedSpan{"accept": request, action: request, "wait": whole, "deliver": whole, "execute": whole,
		"verdict": whole} {
		if s, ok := spans[name]; !ok || s.Parent != parent.ID || s.End.Before(s.Start) {
			t.Errorf("%s: there %t, below %s, expected below %s (%s), %s to %s", name, ok, s.Parent, parent.ID, parent.Name, s.Start, s.End)
		}
	}

	// Each stage begins where the one before ends, and execution is between the two messages.
	order := []time.Time{spans["accept"].Start, spans["wait"].Start, spans["wait"].End, spans["deliver"].Start, spans["deliver"].End,
		spans["execute"].Start, spans["execute"].End, spans["verdict"].Start, spans["verdict"].End}
	for i := 1; i < len(order); i++ {
		if order[i].Before(order[i-1]) {
			t.Errorf("times are not in order: %v", order)
			break
		}
	}
	if whole.Start.After(spans["wait"].Start) || whole.End.Before(spans["verdict"].End) {
		t.Errorf("%s does not have its stages: %s to %s", action, whole.Start, whole.End)
	}

	for _, name := range []string{action, "execute", "verdict"} {
		if spans[name].Attrs["gozzard.verdict"] != verdict {
			t.Errorf("%s: the verdict is %v, expected %s", name, spans[name].Attrs["gozzard.verdict"], verdict)
		}
	}
	if whole.Failed != failed || spans["execute"].Failed != failed {
		t.Errorf("failed: %t, %t", whole.Failed, spans["execute"].Failed)
	}
	if spans["execute"].Attrs["gozzard.estimated"] != nil {
		t.Error("the agent reported no times")
	}
}

// TestTraceOfOneOperation: an operation of the GSE door and one of the native API are one trace each, from the request to the
// verdict, for operations that succeed, fail and are not executed.
func TestTraceOfOneOperation(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("# of the collector\nAuthorization: Bearer trace-secret-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := ft.StartServer(t, "", "--log-level", "debug", "--otlp-endpoint", c.URL, "--otlp-headers-file", headers)
	agent := s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "traced-gse")

	// Through the GSE door: the start takes a second, because of start_check_secs.
	const gse = "/api/c/compapi/v2/gse/operate_proc"
	id, h := traceNo(1)
	h.Set("Tracestate", "vendor=abc")
	gseOperation(t, s.API, 0, d.Spec(nil), d.Name, h, ft.Host(1))
	spans := c.Await(id, 7)
	checkStages(t, spans, gse, "start", "ok", false)
	if took := spans["execute"].End.Sub(spans["execute"].Start); took < 900*time.Millisecond {
		t.Errorf("the start took %s, expected a second", took)
	}
	whole := spans["start"]
	if whole.Attrs["gozzard.process"] != d.Name || whole.Attrs["gozzard.namespace"] != "gse" || whole.State != "vendor=abc" ||
		whole.Attrs["gozzard.app"] != s.Cred.AppCode || whole.Attrs["gozzard.agent"] == "" || whole.Attrs["gozzard.task"] == nil {
		t.Errorf("%+v", whole)
	}
	if c.Resource("service.name") != "gozzard" || c.Resource("service.version") == "" || c.Resource("service.instance.id") == "" {
		t.Errorf("the resource has the name %q, the version %q and the id %q", c.Resource("service.name"), c.Resource("service.version"),
			c.Resource("service.instance.id"))
	}

	// A start of a running process: there is nothing to do, and that is no fault.
	id, h = traceNo(2)
	gseOperation(t, s.API, 0, d.Spec(nil), d.Name, h, ft.Host(1))
	checkStages(t, c.Await(id, 7), gse, "start", "already_running", false)

	// Through the native API: a command that fails.
	d.Script("stop.sh", "echo password=trace-secret-2; exit 3")
	id, h = traceNo(3)
	status, text, answer := nativeOperation(t, s.API, ft.J{"action": "stop", "namespace": "gse", "names": []string{d.Name},
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}, h)
	if status != http.StatusAccepted {
		t.Fatal(text)
	}
	checkStages(t, c.Await(id, 7), "/api/v1/operations", "stop", "command_failed", true)
	for name := range answer {
		if strings.HasPrefix(strings.ToLower(name), "trace") {
			t.Errorf("the answer has the header %s", name)
		}
	}

	// What is not executed has no stages at the agent.
	agent.Kill(syscall.SIGTERM)
	ft.Until(t, time.Minute, func() string { return "the host stays online" }, func() bool { return !s.Online(1) })
	id, h = traceNo(4)
	gseOperation(t, s.API, 1, nil, d.Name, h, ft.Host(1))
	spans = c.Await(id, 3)
	if w := spans["stop"]; w.Attrs["gozzard.verdict"] != "unreachable" || w.Attrs["gozzard.state"] != "not_executed" || !w.Failed {
		t.Errorf("%+v", w)
	}
	if _, ok := spans["execute"]; ok {
		t.Errorf("%v", spans)
	}

	// The log connects operations with traces, at the server and on the host. Neither a log nor a span has a secret.
	id, _ = traceNo(1)
	for name, log := range map[string]string{"server": s.Output(), "agent": agent.Output()} {
		if strings.Contains(log, "trace-secret") {
			t.Errorf("the log of the %s has a secret", name)
		}
		if name == "server" && !strings.Contains(log, id) {
			t.Errorf("the log of the %s does not have the trace:\n%s", name, log)
		}
	}
	if got := c.Header("Authorization"); got != "Bearer trace-secret-1" {
		t.Errorf("the collector gets the header %q", got)
	}
	if all := fmt.Sprint(c.Spans("")); strings.Contains(all, "trace-secret") || strings.Contains(all, "_cmd") {
		t.Errorf("spans have a secret or a command: %s", all)
	}
}

// TestTraceOff: without a collector nothing is traced, sent or echoed, whatever a caller sends.
func TestTraceOff(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	d := ft.NewDaemon(t, t.TempDir(), "traced-off")
	_, h := traceNo(10)
	gseOperation(t, s.API, 0, d.Spec(nil), d.Name, h, ft.Host(1))
	_, text, answer := nativeOperation(t, s.API, ft.J{"action": "stop", "namespace": "gse", "names": []string{d.Name},
		"hosts": []ft.J{{"cloud": 0, "ip": "127.0.0.1"}}}, h)
	for name := range answer {
		if strings.HasPrefix(strings.ToLower(name), "trace") {
			t.Errorf("the answer has the header %s", name)
		}
	}
	if strings.Contains(text, "0af7651916cd43dd") || c.Requests() != 0 {
		t.Errorf("%d requests, %s", c.Requests(), text)
	}
	if _, metrics := s.Get(t, "/metrics"); strings.Contains(metrics, "gozzard_trace_") {
		t.Error("there are metrics about traces")
	}
}

// TestTraceOfManyHosts: a task on 300 hosts has a bounded number of spans: the batches have traces of their own, with links to
// the trace of the request.
func TestTraceOfManyHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	const n = 300
	c := ft.StartCollector(t)
	s := ft.StartServer(t, "", "--log-level", "warn", "--otlp-endpoint", c.URL)
	s.StartSim(t, n)
	hosts := simHosts(n)
	online := 0
	ft.Until(t, 5*time.Minute, func() string { return fmt.Sprintf("%d of %d hosts are online", online, n) }, func() bool {
		var agents map[string]struct {
			Alive int `json:"bk_agent_alive"`
		}
		s.OK("get_agent_status", ft.J{"hosts": hosts}, &agents)
		online = 0
		for _, a := range agents {
			online += a.Alive
		}
		return online == n
	})

	id, h := traceNo(20)
	spec := ft.J{"identity": ft.J{"proc_name": "game", "setup_path": "/srv/game", "pid_path": "/srv/game/pid", "user": "root"},
		"control": ft.J{"start_cmd": "ok", "stop_cmd": "ok"}, "resource": ft.J{"cpu": 10, "mem": 10},
		"monitor_policy": ft.J{"auto_type": 1, "start_check_secs": 0}}
	before := len(c.Spans(""))
	if got := len(gseOperation(t, s.API, 0, spec, "game", h, hosts...)); got != n {
		t.Fatalf("%d verdicts", got)
	}

	// The trace of the request has three spans, and the last one leads to the batches.
	spans := c.Await(id, 3)
	whole := spans[fmt.Sprintf("%d operations", n)]
	if len(spans) != 3 || whole.Attrs["gozzard.operations"] != int64(n) || whole.Attrs["gozzard.ok"] != int64(n) || len(whole.Links) == 0 {
		t.Fatalf("%+v", spans)
	}
	total, all := int64(0), c.Spans("")[before:]
	for _, batch := range whole.Links {
		for _, b := range c.Spans(batch) {
			if b.Name != "start batch" {
				continue
			}
			if len(b.Links) != 1 || b.Links[0] != id || b.Parent != "" {
				t.Errorf("the batch is not linked with the request: %+v", b)
			}
			if k, ok := b.Attrs["gozzard.operations"].(int64); ok {
				total += k
			} else {
				total++
			}
		}
	}
	if total != n || len(all) > 60 {
		t.Errorf("the batches have %d operations in %d spans, expected %d in at most 60", total, len(all), n)
	}
	t.Logf("%d hosts: %d spans, %d batches", n, len(all), len(whole.Links))
}

// TestTD34TraceContext: a malformed, repeated or huge context is not used and does no harm, a rate bounds what callers have traced,
// and with link no caller gets into the trace of another.
func TestTD34TraceContext(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	s := ft.StartServer(t, "", "--otlp-endpoint", c.URL, "--otlp-ratio", "0")
	operate := func(s *ft.Server, h http.Header) {
		t.Helper()
		// No such host: the verdict is there at once.
		if got := gseOperation(t, s.API, 0, nil, "nothing", h, ft.Host(99)); len(got) != 1 {
			t.Fatalf("%v", got)
		}
	}

	// With a ratio of 0 only a caller that traces has its operation traced.
	id, good := traceNo(30)
	huge := strings.Repeat("a=1,", 2000)
	for _, h := range []http.Header{
		{}, {"Traceparent": {"00-" + id + "-b7ad6b7169203331-00"}}, {"Traceparent": {"00-" + id + "-0000000000000000-01"}},
		{"Traceparent": {"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"}}, {"Traceparent": {"ff-" + id + "-b7ad6b7169203331-01"}},
		{"Traceparent": {strings.Repeat("x", 5000)}}, {"Traceparent": {good.Get("Traceparent"), good.Get("Traceparent")}},
		{"Traceparent": {"00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01"}},
	} {
		operate(s, h)
	}
	good.Set("Tracestate", huge)
	operate(s, good)
	for name, span := range c.Await(id, 4) { // of the request, its acceptance, the operation and its verdict
		if span.State != "" {
			t.Errorf("%s has the state %.40s", name, span.State)
		}
	}
	if got := c.Spans(""); len(got) != 4 {
		t.Errorf("there are spans of malformed contexts: %+v", got)
	}

	// Above the rate nothing is traced, and that is counted.
	limited := ft.StartServer(t, "", "--otlp-endpoint", c.URL, "--otlp-callers", "link", "--otlp-rate", "0.001")
	other := newTenant(t, limited, "td34-other", ft.J{"role": "admin", "hosts": "any"})
	before := len(c.Spans(""))
	_, same := traceNo(31)
	for range 5 {
		operate(limited, same)
	}
	gseOperation(t, other.API, 0, nil, "nothing", same, ft.Host(99))
	id, _ = traceNo(31)
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%+v", c.Spans("")[before:]) },
		func() bool { return len(c.Spans("")) >= before+8 })
	traces := map[string]string{}
	for _, span := range c.Spans("")[before:] {
		if span.Trace == id {
			t.Errorf("the trace of a caller has the span %s", span.Name)
		}
		if span.Server {
			traces[span.Attrs["gozzard.app"].(string)] = span.Trace
			if len(span.Links) != 1 || span.Links[0] != id {
				t.Errorf("the links of the request are %v", span.Links)
			}
		}
	}
	if len(traces) != 2 || traces["td34-other"] == traces[limited.Cred.AppCode] {
		t.Errorf("traces by app: %v", traces)
	}
	if _, metrics := limited.Get(t, "/metrics"); !strings.Contains(metrics, `gozzard_trace_operations_dropped_total{reason="rate"} 4`) {
		t.Error("what was not traced is not counted")
	}
}

// faultyCollectors answer what no collector should. They answer at once, or at least begin to.
func faultyCollectors(t *testing.T, elsewhere string) []http.HandlerFunc {
	return []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>welcome</html>")) },
		func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for range 1024 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("all of a huge answer was read")
		},
	}
}

// TestTD34Collector: a collector that is slow, refuses, redirects or answers nonsense or without end delays no operation. What is
// dropped is counted, and traces are sent again when the collector is well.
func TestTD34Collector(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	s := ft.StartServer(t, "", "--otlp-endpoint", c.URL)
	secret := ft.StartCollector(t)
	secret.Answer(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })

	operate := func(n int) {
		t.Helper()
		_, h := traceNo(n)
		if got := gseOperation(t, s.API, 0, nil, "nothing", h, ft.Host(99)); len(got) != 1 {
			t.Errorf("%d: %v", n, got)
		}
	}
	for i, answer := range faultyCollectors(t, secret.URL+"/v1/traces") {
		c.Answer(answer)
		requests := c.Requests()
		operate(40 + i)
		ft.Until(t, time.Minute, func() string { return "the collector is not asked" }, func() bool { return c.Requests() > requests })
		operate(50 + i)
	}

	// A collector that does not answer at all.
	defer c.Hold()()
	operate(49)
	c.WhileOneIsHeld(func() { operate(59) })

	// It is well again: the operation that it delayed comes, too.
	c.Answer(nil)
	operate(60)
	id, _ := traceNo(60)
	c.Await(id, 3)
	id, _ = traceNo(49)
	c.Await(id, 3)
	_, metrics := s.Get(t, "/metrics")
	for _, line := range []string{`gozzard_trace_spans_dropped_total{reason="queue_full"} 0`, "gozzard_trace_spans_sent_total "} {
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics does not have %s", line)
		}
	}
	if strings.Contains(metrics, `gozzard_trace_spans_dropped_total{reason="refused"} 0`) {
		t.Error("what the collector refused is not counted")
	}
}

// TestMetricsByOTLP: the metrics of /metrics are pushed, with their names, labels and kinds.
func TestMetricsByOTLP(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	s := ft.StartServer(t, "", "--otlp-endpoint", c.URL, "--otlp-metrics", "1s")
	gseOperation(t, s.API, 0, nil, "nothing", nil, ft.Host(99))
	_, text := s.Get(t, "/metrics")
	ft.Until(t, time.Minute, func() string { return "the counter of tasks was not pushed" }, func() bool {
		names, tasks := map[string]bool{}, 0.0
		list := c.Metrics()
		if len(list) == 0 {
			return false
		}
		for _, m := range list[len(list)-1].GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
			names[m.GetName()] = true
			switch m.GetName() {
			case "gozzard_tasks_accepted_total":
				tasks = m.GetSum().GetDataPoints()[0].GetAsDouble()
			case "gozzard_http_request_seconds":
				p := m.GetHistogram().GetDataPoints()[0]
				n := uint64(0)
				for _, k := range p.GetBucketCounts() {
					n += k
				}
				if n != p.GetCount() || len(p.GetBucketCounts()) != len(p.GetExplicitBounds())+1 {
					t.Errorf("the buckets have %d of %d", n, p.GetCount())
				}
			}
		}
		if tasks != 1 {
			return false
		}
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok && !names[strings.Fields(name)[0]] {
				t.Errorf("%s was not pushed", strings.Fields(name)[0])
			}
		}
		return true
	})
}
