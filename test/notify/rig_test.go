//go:build linux

package notify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

const secret = "a secret of sixteen bytes or more"

// alert is an alert in the format of Alertmanager's webhooks.
type alert struct {
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Fingerprint string            `json:"fingerprint"`
	Generator   string            `json:"generatorURL"`
}

// message is a message in that format.
type message struct {
	ID                string            `json:"-"`
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []alert           `json:"alerts"`
}

// strict decodes a message and rejects fields that the format does not have.
func strict(t testing.TB, body []byte) (m message) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	if m.Version != "4" || m.GroupKey == "" || m.Receiver == "" || m.CommonLabels == nil || m.GroupLabels == nil {
		t.Errorf("not a message of Alertmanager: %s", body)
	}
	return m
}

// hook is a webhook that checks signatures and keeps what it gets.
type hook struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	messages []message
	answer   int // status of the next answers
	refused  int // requests that got another answer than 200
}

func newHook(t testing.TB) *hook {
	h := &hook{t: t, answer: http.StatusOK}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP checks and keeps a message.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	at := r.Header.Get("Gozzard-Timestamp")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	if r.Header.Get("Gozzard-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		h.t.Errorf("a wrong signature: %s", r.Header.Get("Gozzard-Signature"))
	}
	if n, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(n, 0)).Abs() > time.Minute {
		h.t.Errorf("the timestamp is %q", at)
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answer != http.StatusOK {
		h.refused++
		w.WriteHeader(h.answer)
		return
	}
	m := strict(h.t, body)
	m.ID = r.Header.Get("Gozzard-Message")
	h.messages = append(h.messages, m)
}

func (h *hook) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = status
}

func (h *hook) got() []message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]message(nil), h.messages...)
}

// has reports whether an alert of a kind and a name came with a status.
func has(list []message, kind, name, status string) bool {
	for _, m := range list {
		for _, a := range m.Alerts {
			if a.Labels["kind"] == kind && (name == "" || a.Labels["name"] == name) && a.Status == status {
				return true
			}
		}
	}
	return false
}

// await waits for an alert at a webhook.
func (h *hook) await(t testing.TB, kind, name, status string) {
	t.Helper()
	ft.Until(t, 2*time.Minute, func() string {
		b, _ := json.Marshal(h.got())
		return "no alert " + kind + " of " + name + " " + status + ": " + string(b)
	}, func() bool { return has(h.got(), kind, name, status) })
}

// cli runs the program as a user types it, with the credentials of the server.
func cli(t testing.TB, s *ft.Server, args ...string) string {
	t.Helper()
	out, err := tryCLI(t, s, args...)
	if err != nil {
		t.Fatalf("gozzard %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// create makes a receiver or a subscription, and returns its id.
func create(t testing.TB, s *ft.Server, args ...string) string {
	t.Helper()
	out := cli(t, s, append(args, "-o", "json")...)
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.ID == "" {
		t.Fatalf("gozzard %s prints no id: %s", strings.Join(args, " "), out)
	}
	return made.ID
}

func tryCLI(t testing.TB, s *ft.Server, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(ft.Binary(t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(s.Data, "credentials.json"), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// secretFile is a file with a secret that only its owner may read.
func secretFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startAgent runs an agent that measures every second.
func startAgent(t testing.TB, s *ft.Server, n int) *ft.Program {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ft.AllowEverything(t, dir)
	p := ft.Start(t, "agent"+strconv.Itoa(n), nil, "agent", "--data", dir, "--server", s.Agents, "--ip", "127.0.0."+strconv.Itoa(n),
		"--secret-file", filepath.Join(s.Data, "join.secret"), "--sample-interval", "1s")
	s.AwaitOnline(t, n)
	return p
}

// start operates a process with a shell command on a host. It returns the codes of its results.
func start(t testing.TB, s *ft.Server, n int, name, command string, more ft.J) (codes []int) {
	t.Helper()
	dir := publicDir(t)
	policy := ft.J{"auto_type": 1, "start_check_secs": 0, "start_interval": 0, "start_retries": 100, "op_timeout": 20}
	control := ft.J{"start_cmd": command, "stop_cmd": "kill $(cat pid)"}
	resource := ft.J{}
	for k, v := range more {
		switch {
		case strings.HasPrefix(k, "health_cmd"):
			control[k] = v
		case k == "mem" || k == "act" || k == "samples":
			resource[k] = v
		default:
			policy[k] = v
		}
	}
	body := ft.J{"meta": ft.J{"namespace": "shop", "name": name, "labels": ft.J{"proc_name": "sleep", "tier": "front"}}, "op_type": 0,
		"hosts": []ft.J{ft.Host(n)}, "spec": ft.J{"identity": ft.J{"proc_name": "sleep", "setup_path": dir, "user": "nobody",
			"pid_path": filepath.Join(dir, "pid")}, "control": control, "resource": resource, "monitor_policy": policy}}
	for _, e := range s.Await(s.Operate("operate_proc", body)) {
		codes = append(codes, e.Code)
	}
	t.Cleanup(func() { ft.KillIn(t, dir) })

	// It is supervised from now on.
	body["op_type"] = 3
	s.Await(s.Operate("operate_proc", body))
	return codes
}

// publicDir is a folder of everybody.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gznotify")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}
