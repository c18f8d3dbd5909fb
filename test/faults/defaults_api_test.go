//go:build linux

package faults_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func noDefaultSecret(t *testing.T, f *plainFleet) {
	info, err := os.Stat(f.credentials())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if a := f.ask(t, "GET", "/healthz", nil); a.status != 200 ||
		regexp.MustCompile(`(?i)version|[0-9]+\.[0-9]+`).MatchString(a.body+a.header.Get("Server")) {
		t.Errorf("/healthz answers %q, %q", a.body, a.header)
	}

	for _, path := range []string{"/api/v1/hosts", "/api/v1/apps", "/api/v1/processes", "/api/v1/enrol/tokens",
		"/api/v1/audit", "/debug/pprof/", "/debug/vars"} {
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

	first := strings.TrimSpace(f.gozzard(t, "app", "create", "rotated", "--asserts-users", "--unknown-users",
		"--role", "viewer"))
	second := strings.TrimSpace(f.gozzard(t, "app", "rotate", "rotated"))
	for _, secret := range []string{first, second} {
		if a := f.ask(t, "GET", "/api/v1/whoami", nil, authorizationHeader,
			f.authorization("rotated", secret)); a.status != 200 {
			t.Errorf("one of two secrets: HTTP %d %s", a.status, a.body)
		}
	}

	f.gozzard(t, "app", "retire", "rotated")

	if a := f.ask(t, "GET", "/api/v1/whoami", nil, authorizationHeader,
		f.authorization("rotated", first)); a.status != http.StatusUnauthorized {
		t.Errorf("a retired secret: HTTP %d", a.status)
	}

	body := `{"bk_app_code":"` + f.cred.App + `","bk_app_secret":"` + f.cred.Secret +
		`","bk_username":"admin","meta":{"namespace":"gse"},"page":{"start":0,"limit":1}}`
	if a := f.ask(t, "POST", "/api/c/compapi/v2/gse/sync_proc_status/",
		strings.NewReader(body)); !strings.Contains(a.body, `"result":true`) {
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

// filesWith lists the files of a folder that contain a text.
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
	secret := strings.TrimSpace(f.gozzard(t, "app", "create", "newcomer", "--asserts-users", "--unknown-users"))
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

	if a := f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader, head); a.status == 200 &&
		strings.Contains(a.body, "127.0.0.1") {
		t.Errorf("an app without grants sees hosts: %s", a.body)
	}

	f.gozzard(t, "grant", "add", "--app", "newcomer", "--role", "viewer")

	if a := f.ask(t, "GET", "/api/v1/hosts", nil, authorizationHeader, head); a.status != 200 ||
		!strings.Contains(a.body, "127.0.0.1") {
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

	f.gozzard(t, "grant", "add", "--app", "newcomer", "--role", "operator", "--account", "*", "--account", "root", "--action", "start")

	if a := ask("start"); strings.Contains(a, "permitted") {
		t.Errorf("a caller that may start cannot: %s", a)
	}
	if a := ask("kill"); !strings.Contains(a, "permitted") {
		t.Errorf("a caller that may only start can kill: %s", a)
	}
}

func requestLimits(t *testing.T, f *plainFleet) {
	const path = "/api/v1/operations"
	if a := f.admin(t, "POST", path, strings.NewReader(`{"op":"`+strings.Repeat("x", 5<<20)+`"}`)); a.status < 400 {
		t.Errorf("5 MiB: HTTP %d", a.status)
	}
	if a := f.admin(t, "POST", path, strings.NewReader(strings.Repeat("[", 40)+
		strings.Repeat("]", 40))); a.status != http.StatusBadRequest {
		t.Errorf("40 levels: HTTP %d %s", a.status, a.body)
	}

	if a := f.admin(t, "POST", path, strings.NewReader("\x1f\x8b"), "Content-Encoding", "gzip"); a.status < 400 ||
		a.status >= 500 {
		t.Errorf("compressed: HTTP %d %s", a.status, a.body)
	}

	if a := f.admin(t, "GET", "/api/v1/hosts", nil, "X-Long",
		strings.Repeat("x", 64<<10)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: HTTP %d", a.status)
	}

	a := f.admin(t, "OPTIONS", "/api/v1/hosts", nil, "Origin", "https://evil.example.com",
		"Access-Control-Request-Method", "GET")
	b := f.admin(t, "GET", "/api/v1/hosts", nil, "Origin", "https://evil.example.com")
	for _, a := range []httpAnswer{a, b} {
		if a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("CORS: %v", a.header)
		}
	}

	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Cache-Control": "no-store", "Strict-Transport-Security": "max-age="} {
		if !strings.Contains(b.header.Get(name), want) {
			t.Errorf("%s: %q", name, b.header.Get(name))
		}
	}
}

// sockets lists the addresses that a process listens on, TCP and UDP.
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
			if w := strings.Fields(line); len(w) > 9 && mine[w[9]] &&
				(strings.HasPrefix(table, "udp") || w[3] == "0A") {
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

// beyondLoopback needs an address of this machine that is not a loopback address.
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

	if a := f.ask(t, "GET", "/healthz", nil); a.status != 200 ||
		!strings.Contains(a.header.Get("Strict-Transport-Security"), "max-age=") {
		t.Errorf("HTTP %d %v", a.status, a.header)
	}

	if c, err := tls.Dial("tcp", f.listen, &tls.Config{InsecureSkipVerify: true,
		MaxVersion: tls.VersionTLS11}); err == nil {
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
