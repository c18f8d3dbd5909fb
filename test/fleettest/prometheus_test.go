//go:build linux

package fleettest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

const (
	metricsToken = "token-of-the-agents-0123456789"
	soon         = 2 * time.Minute
)

// TestPrometheusPages: a real Prometheus finds the agents of a real server by service discovery and scrapes them with
// their token. The shipped rules fire for a crash loop, a process that should run and does not, and a lost host, and
// reach a webhook through a real Alertmanager. Every query of the shipped dashboards works and has data.
func TestPrometheusPages(t *testing.T) {
	t.Parallel() // it mostly waits
	prometheus, alertmanager := debian(t, "prometheus"), debian(t, "prometheus-alertmanager")
	x := &watched{T: t, dir: t.TempDir()}

	// A server and two agents that serve metrics. One process is well, one crashes, one should run and does not.
	x.server = ft.StartServer(t, "")
	token := x.write("agents.token", metricsToken+"\n")
	agent := func(n int) *ft.Program {
		return x.server.StartAgent(t, n, "", fmt.Sprintf("GOZZARD_METRICS_LISTEN=127.0.0.%d:%d", n, ft.FreePort(t)),
			"GOZZARD_METRICS_TOKEN_FILE="+token, "GOZZARD_SAMPLE_INTERVAL=1s")
	}
	agent(1)
	doomed := agent(2)
	x.run(1, "well", `command: [sleep, "3600"], restart: always, start_check: 0, health: {command: "true", interval: 1s}`)
	x.run(1, "crashes", `command: [sleep, "0.2"], restart: {policy: always, delay: 0}, start_check: 0`)
	x.run(1, "down", `command: [sh, -c, "sleep 5; exit 3"], restart: never, start_check: 1s`)
	x.run(2, "lost", `command: [sleep, "3600"], restart: always, start_check: 0`)

	// Alertmanager sends to a webhook. Prometheus runs with the shipped files, only faster.
	hook := &hookReceiver{seen: map[string]bool{}}
	receiver := httptest.NewServer(hook)
	defer receiver.Close()
	x.write("alertmanager.yml", "route: {receiver: hook, group_by: [alertname], group_wait: 0s, group_interval: 1s}\n"+
		"receivers: [{name: hook, webhook_configs: [{url: '"+receiver.URL+"', send_resolved: false}]}]\n")
	alerts := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	x.foreign(alertmanager, "--config.file=alertmanager.yml", "--storage.path="+filepath.Join(x.dir, "am"),
		"--web.listen-address="+alerts, "--cluster.listen-address=")

	x.write("gozzard.key", x.viewerToken()+"\n")
	x.write("gozzard.rules.yml", regexp.MustCompile(`(?m)^( +for:) .*$`).
		ReplaceAllString(shippedFile(t, "gozzard.rules.yml"), "$1 0s"))
	x.write("prometheus.yml", shippedFile(t, "prometheus.yml", "127.0.0.1:9093", alerts,
		"127.0.0.1:8080", strings.TrimPrefix(x.server.Cred.URL, "http://"), "interval: 15s", "interval: 1s",
		"refresh_interval: 30s", "refresh_interval: 1s"))
	listen := "127.0.0.1:" + strconv.Itoa(ft.FreePort(t))
	x.url = "http://" + listen
	x.foreign(prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path="+filepath.Join(x.dir, "tsdb"),
		"--web.listen-address="+listen)

	// Both agents are found and scraped, and the processes have what was measured.
	x.has(`count(up{job="gozzard-agents"} == 1) == 2`)
	x.has(`up{job="gozzard-servers"} == 1`)
	const well = `{host="0:127.0.0.1",instance="0:127.0.0.1",namespace="shop",name="well",state="running"}`
	x.has(`gozzard_process_state` + well + ` == 1`)
	x.has(`gozzard_process_resident_memory_bytes{name="well",business="7"} > 0 and gozzard_process_open_fds > 0`)
	x.has(`gozzard_process_healthy{name="well"} == 1`)

	// Processes raise alerts, and then a host that is lost.
	hook.await(t, "GozzardCrashLoop crashes", "GozzardProcessDown down")
	x.checkDashboards()
	doomed.Kill(syscall.SIGKILL)
	hook.await(t, "GozzardAgentDown ", "GozzardHostsLost ")
	for _, wrong := range []string{"GozzardCrashLoop well", "GozzardProcessDown well", "GozzardProcessDown lost",
		"GozzardUnhealthy well", "GozzardRecordFailing ", "GozzardNoFreeDescriptors ", "GozzardServerDown ",
		"GozzardAgentDisconnected ", "GozzardStateUnwritable ", "GozzardBackupTooOld "} {
		if hook.has(wrong) {
			t.Errorf("%s fired without a reason", wrong)
		}
	}
}

// TestAlertRules: the shipped rules fire after their time for what is wrong, and for nothing else.
func TestAlertRules(t *testing.T) {
	promtool := debian(t, "promtool")
	const rules = "../../examples/prometheus/gozzard.rules.yml"
	cases, err := os.ReadFile("testdata/gozzard.rules.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", "testdata/gozzard.rules.test.yml"},
		{"check", "config", "--syntax-only", "../../examples/prometheus/prometheus.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}

	names := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(shippedFile(t, "gozzard.rules.yml"), -1)
	if len(names) == 0 {
		t.Error("there are no rules")
	}
	for _, name := range names {
		if !strings.Contains(string(cases), "{alertname="+strconv.Quote(name[1])+"}") {
			t.Errorf("no case has %s", name[1])
		}
	}
}

// watched is a fleet that Prometheus watches.
type watched struct {
	*testing.T
	dir    string
	server *ft.Server
	url    string // of Prometheus
}

// debian is the path of a program of Debian.
func debian(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// shippedFile is a file of examples/prometheus, with some of its texts replaced.
func shippedFile(t *testing.T, name string, replace ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../examples/prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(b), replace[i]) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(string(b))
}

func (x *watched) write(name, text string) (path string) {
	x.Helper()
	path = filepath.Join(x.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		x.Fatal(err)
	}
	return path
}

// foreign starts a program in the folder of the test.
func (x *watched) foreign(path string, args ...string) {
	x.Helper()
	out, err := os.Create(filepath.Join(x.dir, filepath.Base(path)+".log"))
	if err != nil {
		x.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = x.dir, out, out
	if err := cmd.Start(); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if b, err := os.ReadFile(out.Name()); err == nil && x.Failed() {
			x.Logf("--- output of %s\n%s", path, b[max(0, len(b)-4000):])
		}
	})
}

// gozzard runs the command line as the admin of the server.
func (x *watched) gozzard(args ...string) string {
	x.Helper()
	cmd := exec.Command(ft.Binary(x), append(args, "--credentials", filepath.Join(x.server.Data, "credentials.json"))...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		x.Fatalf("gozzard %s: %v\n%s%s", strings.Join(args, " "), err, out, problem.String())
	}
	return strings.TrimSpace(string(out))
}

// run defines and starts a process on host 127.0.0.n.
func (x *watched) run(n int, name, keys string) {
	x.Helper()
	doc := x.write(name+".yaml", fmt.Sprintf("{name: %s, namespace: shop, hosts: [{ip: 127.0.0.%d}], user: root, "+
		"labels: {business: \"7\"}, %s}\n", name, n, keys))
	x.gozzard("register", "-f", doc)
	x.gozzard("start", name, "-n", "shop", "--all-hosts")
}

// viewerToken is a personal token of a user that may only view.
func (x *watched) viewerToken() string {
	x.Helper()
	password := x.write("password", "a password of prometheus\n")
	x.gozzard("user", "create", "prometheus", "--password-file", password, "--role", "viewer")
	return x.gozzard("user", "token", "create", "prometheus")
}

// query asks Prometheus and returns how many series the answer has.
func (x *watched) query(expr string) (series int, err error) {
	a, err := http.Get(x.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	var body struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(a.Body).Decode(&body); err != nil {
		return 0, err
	}
	if body.Status != "success" {
		return 0, fmt.Errorf("%s: %s", expr, body.Error)
	}
	return len(body.Data.Result), nil
}

// has waits until Prometheus has series for an expression.
func (x *watched) has(expr string) {
	x.Helper()
	var n int
	var err error
	ft.Until(x, soon, func() string { return fmt.Sprintf("%s: %d series, %v", expr, n, err) }, func() bool {
		n, err = x.query(expr)
		return err == nil && n > 0
	})
}

// rejected are the queries that have no data while the server rejects nothing and its record is well.
var rejected = regexp.MustCompile(`gozzard_(store_errors|security_refused)_total`)

// checkDashboards runs every query of every panel, with all values of all variables.
func (x *watched) checkDashboards() {
	x.Helper()
	for _, d := range dashboards(x.T) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				expr := regexp.MustCompile(`\$\w+`).ReplaceAllString(q.Expr, ".*")
				if !rejected.MatchString(expr) {
					x.has(expr)
				} else if _, err := x.query(expr); err != nil {
					x.Errorf("%s, %s: %v", d.Title, p.Title, err)
				}
			}
		}
	}
}

// hookReceiver collects the alerts that Alertmanager sends to a webhook: their names and the names of their processes.
type hookReceiver struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (h *hookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Alerts []struct {
			Status              string
			Labels, Annotations map[string]string
		}
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range body.Alerts {
		if a.Status == "firing" && a.Annotations["summary"] != "" && a.Annotations["action"] != "" {
			h.seen[a.Labels["alertname"]+" "+a.Labels["name"]] = true
		}
	}
}

func (h *hookReceiver) has(alert string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[alert]
}

func (h *hookReceiver) await(t *testing.T, alerts ...string) {
	t.Helper()
	for _, alert := range alerts {
		ft.Until(t, soon, func() string {
			h.mu.Lock()
			defer h.mu.Unlock()
			return fmt.Sprintf("%s is missing: %v", alert, h.seen)
		}, func() bool { return h.has(alert) })
	}
}
