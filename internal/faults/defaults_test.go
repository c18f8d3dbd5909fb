//go:build linux

package faults_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/internal/fleettest"
)

// plainFleet is a server and an agent as somebody gets them who sets nothing but places.
type plainFleet struct {
	t      *testing.T
	data   string
	listen string
	agents string
	server *ft.Program

	state string // of the agent
	agent *ft.Program

	cred struct {
		URL    string `json:"url"`
		App    string `json:"bk_app_code"`
		Secret string `json:"bk_app_secret"`
		User   string `json:"bk_username"`
		CA     string `json:"ca"`
	}
	http *http.Client
}

func startPlain(t *testing.T, ip string, args ...string) *plainFleet {
	t.Helper()
	f := &plainFleet{t: t, data: filepath.Join(t.TempDir(), "server"), state: filepath.Join(t.TempDir(), "agent")}
	f.listen, f.agents = net.JoinHostPort(ip, strconv.Itoa(ft.FreePort(t))), net.JoinHostPort(ip, strconv.Itoa(ft.FreePort(t)))
	f.server = ft.Start(t, "server", nil, append([]string{"server", "--data", f.data, "--listen", f.listen, "--agent-listen", f.agents}, args...)...)
	ft.Until(t, time.Minute, f.server.Output, func() bool {
		b, err := os.ReadFile(f.credentials())
		return err == nil && json.Unmarshal(b, &f.cred) == nil && strings.Contains(f.server.Output(), `"msg":"serving"`)
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(f.cred.CA))
	f.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(f.http.CloseIdleConnections)
	return f
}

func (f *plainFleet) credentials() string { return filepath.Join(f.data, "credentials.json") }

// join enrols an agent and starts it.
func (f *plainFleet) join(t *testing.T) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(f.gozzard(t, "token", "create")), 0o600); err != nil {
		t.Fatal(err)
	}
	f.gozzard(t, "agent", "join", "--server", f.cred.URL, "--token-file", token, "--data", f.state, "--ip", "127.0.0.1")
	f.agent = ft.Start(t, "agent", nil, "agent", "--data", f.state)
	ft.Until(t, time.Minute, f.agent.Output, func() bool { return f.agent.Sessions() > 0 })
}

// gozzard runs a command as the first admin.
func (f *plainFleet) gozzard(t *testing.T, args ...string) string {
	t.Helper()
	out, err := f.try(args...)
	if err != nil {
		t.Fatalf("gozzard %q: %v", args, err)
	}
	return out
}

func (f *plainFleet) try(args ...string) (string, error) {
	cmd := exec.Command(ft.Binary(f.t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+f.credentials())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &stderr)
	}
	return string(out), err
}

type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request; headers are pairs.
func (f *plainFleet) ask(t *testing.T, method, path string, body io.Reader, headers ...string) httpAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.cred.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := f.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return httpAnswer{res.StatusCode, res.Header, string(b)}
}

func (f *plainFleet) authorization(app, secret string) string {
	return fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q}`, app, secret, f.cred.User)
}

const authorizationHeader = "X-Bkapi-Authorization"

func (f *plainFleet) admin(t *testing.T, method, path string, body io.Reader, headers ...string) httpAnswer {
	t.Helper()
	return f.ask(t, method, path, body, append([]string{authorizationHeader, f.authorization(f.cred.App, f.cred.Secret)}, headers...)...)
}

// TestSecureDefaults has a subtest for each line of the list of defaults that this program has. Nothing is set but addresses and folders.
func TestSecureDefaults(t *testing.T) {
	f := startPlain(t, "127.0.0.1", "--enrol")
	f.join(t)
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *plainFleet)
	}{
		{"no default secret and no open route", noDefaultSecret},
		{"app secrets are random, hashed and rotated", appSecrets},
		{"roles deny by default", rolesDeny},
		{"limits of requests, no compression, no CORS", requestLimits},
		{"great stops have to be confirmed", greatStops},
		{"rates are limited", ratesAreLimited},
		{"what an agent may send is limited", agentsAreLimited},
		{"browsers are held", browsersAreHeld},
		{"the server listens for callers and agents only", serverListens},
		{"agents speak TLS 1.3, TLS first", agentsTLS},
		{"agents only connect out", agentConnectsOut},
		{"the agent's socket is for root and itself", localSocket},
		{"enrolment tokens are short and used once", enrolmentTokens},
		{"the server is pinned and nothing switches that off", serverIsPinned},
		{"an agent's key opens its own subjects only", ownSubjectsOnly},
		{"every operation is signed", operationsAreSigned},
		{"the policy of a host", defaultPolicy},
		{"the state is the agent's alone", stateIsPrivate},
		{"least-privilege modes", leastPrivilege},
		{"the unit", unitIsAsPromised},
		{"children get exactly what they should", childrenGetNoMore},
		{"signals go through pidfds", signalsByPidfd},
		{"audit is on and chained", auditIsOn},
		{"logs are JSON without control characters", logsAreJSON},
		{"the record is synced in full, doctor warns, backups are encrypted", recordAndBackups},
		{"after a restore hosts wait for the admin", hostsWaitAfterARestore},
		{"the supply chain", supplyChain},
		{"updates are signed, newer and reversible", updatesAreSigned},
		{"too many bad logins have to wait", badLoginsWait}, // last: it is this address that waits
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, f) })
	}
	t.Run("API on TLS beyond loopback, metrics for the known", beyondLoopback)
}

func noDefaultSecret(t *testing.T, f *plainFleet) {
	info, err := os.Stat(f.credentials())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if a := f.ask(t, "GET", "/healthz", nil); a.status != 200 || regexp.MustCompile(`(?i)version|[0-9]+\.[0-9]+`).MatchString(a.body+a.header.Get("Server")) {
		t.Errorf("/healthz tells %q, %q", a.body, a.header)
	}
	for _, path := range []string{"/", "/api/v1/hosts", "/api/v1/apps", "/api/v1/processes", "/api/v1/enrol/tokens", "/api/v1/audit", "/debug/pprof/", "/debug/vars"} {
		if a := f.ask(t, "GET", path, nil); a.status < 400 {
			t.Errorf("GET %s without credentials: HTTP %d %s", path, a.status, a.body)
		}
	}
	other := startPlain(t, "127.0.0.1")
	if other.cred.Secret == f.cred.Secret || other.cred.Secret == "" {
		t.Error("two servers have one secret")
	}
}

func appSecrets(t *testing.T, f *plainFleet) {
	if b, err := base64.RawURLEncoding.DecodeString(f.cred.Secret); err != nil || len(b) != 32 {
		t.Errorf("the secret is no 256 random bits: %d bytes, %v", len(b), err)
	}
	first := strings.TrimSpace(f.gozzard(t, "app", "create", "rotated", "--asserts-users", "--role", "viewer"))
	second := strings.TrimSpace(f.gozzard(t, "app", "rotate", "rotated"))
	for _, secret := range []string{first, second} {
		if a := f.ask(t, "GET", "/api/v1/whoami", nil, authorizationHeader, f.authorization("rotated", secret)); a.status != 200 {
			t.Errorf("one of two secrets: HTTP %d %s", a.status, a.body)
		}
	}
	f.gozzard(t, "app", "retire", "rotated")
	if a := f.ask(t, "GET", "/api/v1/whoami", nil, authorizationHeader, f.authorization("rotated", first)); a.status != http.StatusUnauthorized {
		t.Errorf("a retired secret: HTTP %d", a.status)
	}
	body := `{"bk_app_code":"` + f.cred.App + `","bk_app_secret":"` + f.cred.Secret + `","bk_username":"admin","meta":{"namespace":"gse"},"page":{"start":0,"limit":1}}`
	if a := f.ask(t, "POST", "/api/c/compapi/v2/gse/sync_proc_status/", strings.NewReader(body)); !strings.Contains(a.body, `"result":true`) {
		t.Errorf("credentials in the body: %s", a.body)
	}
	for _, secret := range []string{f.cred.Secret, first, second} {
		if where := filesWith(t, f.data, secret); len(where) > 0 && !slices.Equal(where, []string{"credentials.json"}) {
			t.Errorf("a secret lies in %q", where)
		}
		if strings.Contains(f.server.Output(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// filesWith names the files of a folder that hold a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func rolesDeny(t *testing.T, f *plainFleet) {
	secret := strings.TrimSpace(f.gozzard(t, "app", "create", "newcomer", "--asserts-users"))
	head := f.authorization("newcomer", secret)
	ask := func(action string) string {
		body := `{"action":"` + action + `","namespace":"n","names":["p"],"hosts":[{"cloud":0,"ip":"127.0.0.1"}]}`
		var task struct {
			ID string `json:"task_id"`
		}
		a := f.ask(t, "POST", "/api/v1/operations", strings.NewReader(body), authorizationHeader, head)
		if a.status >= 400 || json.Unmarshal([]byte(a.body), &task) != nil {
			return a.body
		}
		return f.ask(t, "GET", "/api/v1/tasks/"+task.ID+"?wait=20s", nil, authorizationHeader, head).body
	}
	if a := f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader, head); a.status == 200 && strings.Contains(a.body, "127.0.0.1") {
		t.Errorf("an app without grants sees hosts: %s", a.body)
	}
	f.gozzard(t, "grant", "add", "--app", "newcomer", "--role", "viewer")
	if a := f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader, head); a.status != 200 || !strings.Contains(a.body, "127.0.0.1") {
		t.Errorf("a viewer: HTTP %d %s", a.status, a.body)
	}
	for _, path := range []string{"/api/v1/apps", "/api/v1/users", "/api/v1/grants"} {
		if a := f.ask(t, "GET", path, nil, authorizationHeader, head); a.status != http.StatusForbidden {
			t.Errorf("a viewer at %s: HTTP %d", path, a.status)
		}
	}
	if a := ask("stop"); !strings.Contains(a, "permitted") {
		t.Errorf("a viewer stops: %s", a)
	}
	f.gozzard(t, "grant", "add", "--app", "newcomer", "--role", "operator", "--action", "start")
	if a := ask("start"); strings.Contains(a, "permitted") {
		t.Errorf("who may start does not: %s", a)
	}
	if a := ask("kill"); !strings.Contains(a, "permitted") {
		t.Errorf("who may only start kills: %s", a)
	}
}

func requestLimits(t *testing.T, f *plainFleet) {
	const path = "/api/v1/operations"
	if a := f.admin(t, "POST", path, strings.NewReader(`{"op":"`+strings.Repeat("x", 5<<20)+`"}`)); a.status < 400 {
		t.Errorf("5 MiB: HTTP %d", a.status)
	}
	if a := f.admin(t, "POST", path, strings.NewReader(strings.Repeat("[", 40)+strings.Repeat("]", 40))); a.status != http.StatusBadRequest {
		t.Errorf("40 levels: HTTP %d %s", a.status, a.body)
	}
	if a := f.admin(t, "POST", path, strings.NewReader("\x1f\x8b"), "Content-Encoding", "gzip"); a.status < 400 || a.status >= 500 {
		t.Errorf("compressed: HTTP %d %s", a.status, a.body)
	}
	if a := f.admin(t, "GET", "/api/v1/hosts", nil, "X-Long", strings.Repeat("x", 64<<10)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: HTTP %d", a.status)
	}
	a := f.admin(t, "OPTIONS", "/api/v1/hosts", nil, "Origin", "https://evil.example.com", "Access-Control-Request-Method", "GET")
	b := f.admin(t, "GET", "/api/v1/hosts", nil, "Origin", "https://evil.example.com")
	for _, a := range []httpAnswer{a, b} {
		if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("CORS: %v", a.header)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Strict-Transport-Security": "max-age="} {
		if !strings.Contains(b.header.Get(name), want) {
			t.Errorf("%s: %q", name, b.header.Get(name))
		}
	}
}

// sockets lists what a process listens on, TCP and UDP.
func sockets(t *testing.T, pid int) (listening []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, e := range entries {
		if link, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(link, "socket:[") {
			mine[strings.Trim(strings.TrimPrefix(link, "socket:"), "[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(b), "\n")[1:] {
			if w := strings.Fields(line); len(w) > 9 && mine[w[9]] && (strings.HasPrefix(table, "udp") || w[3] == "0A") {
				listening = append(listening, table+" "+w[1])
			}
		}
	}
	return listening
}

func serverListens(t *testing.T, f *plainFleet) {
	if l := sockets(t, f.server.PID()); len(l) != 2 {
		t.Errorf("the server listens on %q", l)
	}
}

func agentConnectsOut(t *testing.T, f *plainFleet) {
	if l := sockets(t, f.agent.PID()); len(l) != 0 {
		t.Errorf("the agent listens on %q", l)
	}
}

// agentsTLS: the listener says nothing to whoever does not speak TLS 1.3 with a certificate of the fleet.
func agentsTLS(t *testing.T, f *plainFleet) {
	c, err := net.Dial("tcp", f.agents)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if n, _ := c.Read(make([]byte, 10)); n > 0 {
		t.Error("a greeting before TLS")
	}
	for name, config := range map[string]*tls.Config{
		"TLS 1.2":        {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
		"no certificate": {InsecureSkipVerify: true},
	} {
		c, err := tls.Dial("tcp", f.agents, config)
		if err != nil {
			continue
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 10)); err == nil || n > 0 {
			t.Errorf("%s: let in", name)
		}
		_ = c.Close()
	}
}

func enrolmentTokens(t *testing.T, f *plainFleet) {
	token := strings.TrimSpace(f.gozzard(t, "token", "create"))
	parts := strings.Split(token, ".")
	if len(parts) != 4 || parts[0] != "gz1" {
		t.Fatalf("%d parts", len(parts))
	}
	var list struct {
		Tokens []struct {
			ID               string
			Created, Expires time.Time
			Uses             int
		}
	}
	if err := json.Unmarshal([]byte(f.gozzard(t, "token", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Tokens, func(r struct {
		ID               string
		Created, Expires time.Time
		Uses             int
	}) bool {
		return r.ID == parts[1]
	})
	if i < 0 || list.Tokens[i].Uses != 1 || list.Tokens[i].Expires.Sub(list.Tokens[i].Created) != time.Hour {
		t.Errorf("%+v", list.Tokens)
	}
	if where := filesWith(t, f.data, parts[2]); len(where) > 0 {
		t.Errorf("the token's secret lies in %q", where)
	}
	if !strings.Contains(f.gozzard(t, "audit", "list"), parts[1]) {
		t.Error("a new token is not in the audit")
	}
}

func serverIsPinned(t *testing.T, f *plainFleet) {
	for _, args := range [][]string{{"agent", "--help"}, {"agent", "join", "--help"}, {"server", "--help"}, {"ps", "--help"}} {
		if help := strings.ToLower(f.gozzard(t, args...)); strings.Contains(help, "insecure") || strings.Contains(help, "skip-verify") || strings.Contains(help, "no-verify") {
			t.Errorf("gozzard %q has a way around the check of the server", args)
		}
	}
	parts := strings.Split(strings.TrimSpace(f.gozzard(t, "token", "create")), ".")
	token := filepath.Join(t.TempDir(), "token")
	wrong := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	if err := os.WriteFile(token, []byte(strings.Join([]string{parts[0], parts[1], parts[2], wrong}, ".")), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "agent")
	if out, err := f.try("agent", "join", "--server", f.cred.URL, "--token-file", token, "--data", dir, "--ip", "127.0.0.2"); err == nil {
		t.Errorf("joined a server of another pin: %s", out)
	}
}

func defaultPolicy(t *testing.T, f *plainFleet) {
	path := filepath.Join(f.state, "policy.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{
		"allow_root": "false", "users": `["@gozzard"]`, "deny_uids": `"1-999"`, "path_prefixes": `["/opt", "/srv", "/data", "/usr/local", "/home"]`, "shell": "true",
		"ops": "[start, stop, restart, reload, kill, query, host, unhost]", "max_processes": "2000",
	} {
		if !regexp.MustCompile(`(?m)^` + setting + `: ` + regexp.QuoteMeta(want) + `( |$)`).Match(b) {
			t.Errorf("%s is not %s in\n%s", setting, want, b)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// stateIsPrivate: an agent whose folder, policy or program others could change does not start.
func stateIsPrivate(t *testing.T, f *plainFleet) {
	if info, err := os.Stat(f.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	program := filepath.Join(ft.Lodge(t, "root").Dir, "gozzard")
	f.agent.Through("sh", "-c", `shift; exec "`+program+`" "$@"`, "sh")
	for name, path := range map[string]string{
		"folder": f.state, "policy": filepath.Join(f.state, "policy.yaml"), "program": program, "folder of the program": filepath.Dir(program),
	} {
		f.agent.Kill(syscall.SIGKILL)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, before.Mode().Perm()|0o022); err != nil {
			t.Fatal(err)
		}
		sessions := f.agent.Sessions()
		f.agent.Again()
		ended := false
		select {
		case <-f.agent.Done():
			ended = true
		case <-time.After(30 * time.Second):
		}
		if !ended || f.agent.ExitCode() == 0 || f.agent.Sessions() != sessions {
			t.Errorf("an agent with a %s that others may write runs", name)
		}
		if !strings.Contains(f.agent.Output(), path+" is writable by others (mode") {
			t.Errorf("a %s that others may write: not said", name)
		}
		if err := os.Chmod(path, before.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	sessions := f.agent.Sessions()
	f.agent.Again() // the copy starts as it was
	ft.Until(t, time.Minute, f.agent.Output, func() bool { return f.agent.Sessions() > sessions })
	f.agent.Kill(syscall.SIGKILL)
	f.agent.Through()
	f.agent.Again()
}

func auditIsOn(t *testing.T, f *plainFleet) {
	before := strings.Count(f.gozzard(t, "audit", "list"), "\n")
	body := `{"action":"stop","namespace":"audited","names":["p"],"hosts":[{"cloud":0,"ip":"127.0.0.1"}]}`
	if a := f.admin(t, "POST", "/api/v1/operations", strings.NewReader(body)); a.status >= 300 {
		t.Fatalf("HTTP %d %s", a.status, a.body)
	}
	if after := strings.Count(f.gozzard(t, "audit", "list"), "\n"); after <= before {
		t.Errorf("%d rows before an operation, %d behind it", before, after)
	}
	f.gozzard(t, "audit", "verify")
}

func logsAreJSON(t *testing.T, f *plainFleet) {
	f.ask(t, "POST", "/api/c/compapi/v2/gse/operate_proc/", strings.NewReader(`{"bk_app_code":"a\u001b[31m\n{\"level\":\"INFO\"}\u2028","bk_app_secret":"x","bk_username":"b\r\n"}`))
	for name, p := range map[string]*ft.Program{"server": f.server, "agent": f.agent} {
		for line := range strings.Lines(p.Output()) {
			line = strings.TrimSuffix(line, "\n")
			if !json.Valid([]byte(line)) && !strings.HasPrefix(line, "gozzard: ") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 }) {
				t.Errorf("the %s logs %q", name, line)
			}
		}
	}
}

// beyondLoopback needs an address of this machine that is not loopback.
func beyondLoopback(t *testing.T) {
	ip := ownAddress(t)
	f := startPlain(t, ip)
	if !strings.HasPrefix(f.cred.URL, "https://") || f.cred.CA == "" {
		t.Fatalf("%s", f.cred.URL)
	}
	plain := "http://" + f.listen + "/healthz"
	if res, err := http.Get(plain); err == nil {
		if res.StatusCode < 400 {
			t.Errorf("plain HTTP: %s", res.Status)
		}
		_ = res.Body.Close()
	}
	if a := f.ask(t, "GET", "/healthz", nil); a.status != 200 || !strings.Contains(a.header.Get("Strict-Transport-Security"), "max-age=") {
		t.Errorf("HTTP %d %v", a.status, a.header)
	}
	if c, err := tls.Dial("tcp", f.listen, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = c.Close()
	}
	if a := f.ask(t, "GET", "/metrics", nil); a.status != http.StatusUnauthorized {
		t.Errorf("metrics for a stranger: HTTP %d", a.status)
	}
	if a := f.admin(t, "GET", "/metrics", nil); a.status != 200 {
		t.Errorf("metrics for the admin: HTTP %d", a.status)
	}
}

func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// supplyChain: what a release is made with is in the tree.
func supplyChain(t *testing.T, _ *plainFleet) {
	root := filepath.Join("..", "..")
	for file, want := range map[string]string{
		"SECURITY.md": `90 days`, "Makefile": `(?s)govulncheck.*release:`, "go.mod": `nats-io/nats-server/v2 v2\.(1[5-9]|[2-9][0-9])\.`,
		".ci/release": `(?s)cmp .*sbom.*sums.*sign`, "packaging/gozzard-agent.service": `(?s)KillMode=process.*UMask=0077`,
	} {
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !regexp.MustCompile(want).Match(b) {
			t.Errorf("%s has no %s, %v", file, want, err)
		}
	}
}
