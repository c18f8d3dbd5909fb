//go:build linux

package fleettest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// pushOf makes the settings of an agent that pushes its metrics to a collector every second.
func pushOf(c *ft.Collector, more ...string) []string {
	return append([]string{"GOZZARD_OTLP_ENDPOINT=" + c.URL, "GOZZARD_OTLP_METRICS=1s", "GOZZARD_SAMPLE_INTERVAL=1s"}, more...)
}

// TestMetricsOfAgentsByOTLP: an agent with a settings file pushes what it would serve to Prometheus, over TLS and with the
// headers of a file. An agent without these settings sends nothing.
func TestMetricsOfAgentsByOTLP(t *testing.T) {
	t.Parallel() // it mostly waits
	c, ca := ft.StartTLSCollector(t)
	dir := t.TempDir()
	headers, settings := filepath.Join(dir, "headers"), filepath.Join(dir, "agent.yaml")
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	for path, text := range map[string]string{headers: "Authorization: Bearer push-secret-1\nX-Scope-OrgID: fleet\n",
		settings: fmt.Sprintf("otlp-endpoint: %s\notlp-headers-file: %s\notlp-ca: %s\notlp-metrics: 1s\nsample-interval: 1s\n"+
			"metrics-listen: %s\nlog-level: debug\n", c.URL, headers, ca, listen)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", "GOZZARD_CONFIG="+settings)
	s.StartAgent(t, 2, "")
	d := ft.NewDaemon(t, t.TempDir(), "pushed")
	gseOperation(t, s.API, 0, d.Spec(nil), d.Name, nil, ft.Host(1))

	// The process has its series, with the labels that Prometheus would see.
	of := map[string]string{"name": d.Name, "namespace": "gse", "host": "0:127.0.0.1"}
	running := map[string]string{"name": d.Name, "state": "running"}
	ft.Until(t, time.Minute, func() string { return "the process was not pushed" }, func() bool {
		memory := c.Point("gozzard_process_resident_memory_bytes", of)
		return c.Point("gozzard_process_state", running).GetAsDouble() == 1 && memory.GetAsDouble() > 0
	})
	if p := c.Point("gozzard_process_restarts_total", of); p == nil || p.GetAsDouble() != 0 || p.GetStartTimeUnixNano() == 0 {
		t.Errorf("restarts: %v", p)
	}
	if m := c.Metric("gozzard_process_cpu_seconds_total"); !m.GetSum().GetIsMonotonic() ||
		m.GetSum().GetAggregationTemporality() != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		t.Errorf("processor time is no counter: %v", m)
	}
	if c.Point("gozzard_agent_connected", nil).GetAsDouble() != 1 {
		t.Error("the agent does not say that it is connected")
	}

	// All that Prometheus would scrape is pushed.
	res, err := http.Get("http://" + listen + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil || !strings.Contains(text.String(), "gozzard_process_state") {
		t.Fatalf("%v: %s", err, text.String())
	}
	for line := range strings.Lines(text.String()) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ = strings.Cut(name, " ")
			ft.Until(t, time.Minute, func() string { return name + " was not pushed" }, func() bool { return c.Metric(name) != nil })
		}
	}

	// The headers are sent, and no log has them. Only this agent pushes, and says which one it is.
	if a, scope := c.Header("Authorization"), c.Header("X-Scope-Orgid"); a != "Bearer push-secret-1" || scope != "fleet" {
		t.Errorf("the collector gets the headers %q and %q", a, scope)
	}
	if strings.Contains(agent.Output(), "push-secret-1") {
		t.Error("the log has a secret")
	}
	id := c.Point("gozzard_agent_info", map[string]string{"host": "0:127.0.0.1"})
	for _, m := range c.Metrics() {
		resource := map[string]string{}
		for _, a := range m.GetResourceMetrics()[0].GetResource().GetAttributes() {
			resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		if resource["service.name"] != "gozzard-agent" || ft.Label(id, "agent") != resource["service.instance.id"] ||
			resource["service.version"] == "" {
			t.Fatalf("the resource is %v, the agent %v", resource, id)
		}
	}
}

// TestTD34CollectorOfAgents: a collector that is down, slow, refuses, redirects or answers nonsense or without end delays neither
// an operation nor the supervision of an agent. Failed pushes are counted, and it pushes again when the collector is well.
func TestTD34CollectorOfAgents(t *testing.T) {
	t.Parallel() // it mostly waits
	c := ft.StartCollector(t)
	secret := ft.StartCollector(t)
	secret.Answer(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", pushOf(c)...)
	d := ft.NewDaemon(t, t.TempDir(), "push-faults")
	operate := func(op int, spec ft.J) {
		t.Helper()
		for host, e := range gseOperation(t, s.API, op, spec, d.Name, nil, ft.Host(1)) {
			if e.Code != 0 {
				t.Errorf("%s: %+v", host, e)
			}
		}
	}
	const start, stop, reload = 0, 1, 8

	// Every fault: operations end as they do without a collector.
	for _, answer := range faultyCollectors(t, secret.URL+"/v1/metrics") {
		c.Answer(answer)
		requests := c.Requests()
		ft.Until(t, time.Minute, func() string { return "the collector is not asked" }, func() bool { return c.Requests() > requests })
		operate(start, d.Spec(ft.J{"auto_type": 1, "start_check_secs": 0}))
		operate(stop, nil)
	}

	// A collector that answers nothing: operations and restarts of what crashed do not wait for it.
	operate(start, d.Spec(ft.J{"auto_type": 1, "start_check_secs": 0}))
	release := c.Hold()
	defer release()
	c.WhileOneIsHeld(func() { operate(reload, nil) })
	before := d.PID()
	if before < 2 {
		t.Fatalf("the process has the pid %d", before)
	}
	_ = syscall.Kill(before, syscall.SIGKILL)
	ft.Until(t, time.Minute, func() string { return "the process was not started again" },
		func() bool { return d.PID() > 0 && d.PID() != before })

	// It is well again, and all failures were counted.
	c.Answer(nil)
	release()
	failed := map[string]string{"result": "failed"}
	ft.Until(t, time.Minute, func() string { return "pushes did not come again, or their failures were not counted" },
		func() bool { return c.Point("gozzard_metric_pushes_total", failed).GetAsDouble() >= 4 })
	ft.Until(t, time.Minute, func() string { return "the log does not say it:\n" + agent.Output() }, func() bool {
		return strings.Contains(agent.Output(), "cannot push metrics") && strings.Contains(agent.Output(), "metrics are pushed again")
	})

	// An agent whose collector does not answer ends when it is asked to.
	defer c.Hold()()
	c.WhileOneIsHeld(func() {})
	agent.Kill(syscall.SIGTERM)
	if agent.Signal() != 0 || agent.ExitCode() != 0 {
		t.Errorf("the agent ended with signal %v and code %d", agent.Signal(), agent.ExitCode())
	}
}

// TestTD34CollectorOfAgentsIsDown: an agent starts, operates and says it once in the log while nothing listens at the address of
// the collector, and pushes when it comes.
func TestTD34CollectorOfAgentsIsDown(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	gone := ft.StartCollector(t)
	address := gone.Listener.Addr().String()
	gone.Close()
	agent := s.StartAgent(t, 1, "", pushOf(gone)...)
	d := ft.NewDaemon(t, t.TempDir(), "push-down")
	gseOperation(t, s.API, 0, d.Spec(nil), d.Name, nil, ft.Host(1))
	ft.Until(t, time.Minute, func() string { return agent.Output() }, func() bool {
		return strings.Contains(agent.Output(), "cannot push metrics")
	})
	c := ft.StartCollectorAt(t, address)
	ft.Until(t, time.Minute, func() string { return "nothing was pushed" }, func() bool {
		return c.Point("gozzard_process_state", map[string]string{"name": d.Name}) != nil
	})
	if n := strings.Count(agent.Output(), "cannot push metrics"); n != 1 {
		t.Errorf("the log has the problem %d times", n)
	}
}

// TestPushSettings: settings of an agent that cannot work, or that would show secrets, are rejected with what to do.
func TestPushSettings(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	join := filepath.Join(ft.StartServer(t, "").Data, "join.secret")
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const local = "http://127.0.0.1:4318"
	for i, x := range []struct {
		want string
		args []string
	}{
		{"use https beyond this machine", []string{"--otlp-endpoint", "http://10.0.0.1:4318"}},
		{"without a password", []string{"--otlp-endpoint", "https://user:push-secret-2@collector.example.com"}},
		{"use a URL", []string{"--otlp-endpoint", "127.0.0.1:4318"}},
		{"use 1s to 24h", []string{"--otlp-endpoint", local, "--otlp-metrics", "10ms"}},
		{"use 1s to 24h", []string{"--otlp-endpoint", local, "--otlp-metrics", "0"}},
		{"chmod 600", []string{"--otlp-endpoint", local, "--otlp-headers-file", file("open", "A: push-secret-2", 0o644)}},
		{"line 2 is not a header", []string{"--otlp-endpoint", local, "--otlp-headers-file", file("odd", "A: b\npush-secret-2", 0o600)}},
		{"belongs to the request itself", []string{"--otlp-endpoint", local, "--otlp-headers-file", file("own", "Host: push-secret-2", 0o600)}},
		{"not a file of at most", []string{"--otlp-endpoint", local, "--otlp-headers-file", file("huge", strings.Repeat("#\n", 64<<10), 0o600)}},
		{"not a file of at most", []string{"--otlp-endpoint", local, "--otlp-headers-file", folder}},
		{"no such file", []string{"--otlp-endpoint", local, "--otlp-headers-file", filepath.Join(dir, "none")}},
		{"no certificate in PEM", []string{"--otlp-endpoint", local, "--otlp-ca", join}},
	} {
		state := filepath.Join(dir, "agent"+strconv.Itoa(i))
		p := ft.Start(t, "agent", nil, append([]string{"agent", "--data", state, "--secret-file", join}, x.args...)...)
		select {
		case <-p.Done():
		case <-time.After(time.Minute):
			t.Errorf("%v: the agent runs", x.args)
			p.Kill(syscall.SIGKILL)
		}
		if out := p.Output(); p.ExitCode() == 0 || !strings.Contains(out, x.want) || strings.Contains(out, "push-secret-2") {
			t.Errorf("%v: code %d, expected %q:\n%s", x.args, p.ExitCode(), x.want, out)
		}
		if _, err := os.Stat(state); err == nil {
			t.Errorf("%v: the agent made its state folder", x.args)
		}
	}
}
