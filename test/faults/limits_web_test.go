//go:build linux

package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// openStream opens an event stream with a personal token.
func (s *limited) openStream(token string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.Cred.URL+"/api/v1/events/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestTD14EventStreams: a stream ends when the right of its reader ends: the person is deleted, the token is revoked, or
// the grants are gone. One reader cannot take the streams of others.
func TestTD14EventStreams(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t)
	login := func(name string) string {
		t.Helper()
		status, body := s.admin().send(http.MethodPost, "/api/v1/users", ft.J{"name": name,
			"password": "right horse " + name, "grants": []ft.J{{"role": "viewer"}}})
		if status >= 300 {
			t.Fatalf("user %s: %d %s", name, status, body)
		}
		c := appCaller{s: s, client: http.DefaultClient}
		status, body = c.send(http.MethodPost, "/api/v1/login", ft.J{"user": name, "password": "right horse " + name})
		var a struct{ Token string }
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK || a.Token == "" {
			t.Fatalf("login of %s: %d %s", name, status, body)
		}
		return a.Token
	}

	// The limit of one reader.
	token := login("greedy")
	opened, refused := 0, 0
	for range 40 {
		switch res := s.openStream(token); res.StatusCode {
		case http.StatusOK:
			opened++
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("a stream: HTTP %d", res.StatusCode)
		}
	}
	if opened != 20 || refused != 20 {
		t.Errorf("one reader opened %d streams, and %d were refused", opened, refused)
	}

	// The end of a reader.
	for name, end := range map[string]func(name, token string){
		"deleted": func(name, _ string) { s.cli("user", "delete", name) },
		"logout": func(_, token string) {
			req, err := http.NewRequest(http.MethodPost, s.Cred.URL+"/api/v1/logout", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("logout: %v %v", res, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := login(name)
			res := s.openStream(token)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("a stream: HTTP %d", res.StatusCode)
			}
			end(name, token)

			done := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(bufio.NewReader(res.Body))
				done <- string(b)
			}()
			select {
			case text := <-done:
				if strings.Contains(text, "data:") {
					t.Errorf("the stream had events after the end of its reader: %s", text)
				}
			case <-time.After(time.Minute): // a stream looks at its reader every 5 seconds when nothing happens
				t.Error("the stream goes on")
			}
		})
	}
}

// TestTE9ForeignHosts: a page of another site whose name points to this machine reads neither the metrics nor a development
// server.
func TestTE9ForeignHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t)
	ask := func(path, host string) int {
		t.Helper()
		answer := s.raw("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
		var status int
		if _, err := fmt.Sscanf(answer, "HTTP/1.1 %d", &status); err != nil {
			t.Fatalf("%v in %s", err, answer)
		}
		return status
	}
	if got := ask("/metrics", s.hostPort()); got != http.StatusOK {
		t.Errorf("metrics on this machine: %d", got)
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example"} {
		if got := ask("/metrics", host); got != http.StatusUnauthorized {
			t.Errorf("metrics for %s: %d", host, got)
		}
	}

	dev := ft.StartDev(t, 1)
	s.Cred.URL = dev.Cred.URL
	for host, want := range map[string]int{s.hostPort(): http.StatusOK, "localhost": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest} {
		if got := ask("/healthz", host); got != want {
			t.Errorf("dev for %s: %d", host, got)
		}
	}
}

// TestTE9TwoLengths: a request with both Content-Length and Transfer-Encoding is refused and the connection ends, also
// behind other requests on the connection. Honest requests of both kinds are served on one connection.
func TestTE9TwoLengths(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t)
	const (
		plain   = "POST /api/v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
		chunked = "POST /api/v1/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
		smuggle = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	)
	both := func(first, second string) string {
		return "POST /api/v1/login HTTP/1.1\r\nHost: x\r\n" + first + "\r\n" + second + "\r\n\r\n0\r\n\r\n"
	}
	attacks := []string{
		both("Content-Length: 5", "Transfer-Encoding: chunked"), both("Transfer-Encoding: chunked", "Content-Length: 5"),
		both("transfer-encoding: chunked", "content-length: 5"),
	}

	// Alone, and sent ahead behind another request.
	for _, attack := range attacks {
		for _, before := range []string{"", plain, chunked} {
			answers := s.raw(before + attack + smuggle)
			if !strings.Contains(answers, "both Content-Length and Transfer-Encoding") || strings.Contains(answers, `"ok"`) {
				t.Errorf("%q after %q: %s", attack, before, answers)
			}
		}
	}

	// On a connection that was used: each part is sent when the answer before it is there, also in two pieces.
	c, err := net.Dial("tcp", s.hostPort())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	ask := func(parts ...string) (int, string) {
		t.Helper()
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				t.Fatal(err)
			}
		}
		res, err := http.ReadResponse(in, nil)
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
	for _, honest := range []string{plain, chunked, plain, chunked, chunked} {
		if status, body := ask(honest); status != http.StatusBadRequest || strings.Contains(body, "both") {
			t.Fatalf("an honest request: %d %s", status, body)
		}
	}
	// The head of the next request is sent in part with the one before it.
	status, body := ask(plain + "POST /api/v1/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: ")
	if status != http.StatusBadRequest || strings.Contains(body, "both") {
		t.Fatalf("an honest request: %d %s", status, body)
	}
	status, body = ask("POST /api/v1/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	if status != http.StatusBadRequest || !strings.Contains(body, "both") {
		t.Errorf("two lengths, sent in pieces: %d %s", status, body)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", err)
	}
}

// TestReleaseNeedsTheDatabase: `make release` fails when the database of vulnerabilities cannot be asked.
func TestReleaseNeedsTheDatabase(t *testing.T) {
	plan, err := exec.Command("make", "-C", repo("."), "--dry-run", "release").CombinedOutput()
	if err != nil || !strings.Contains(string(plan), ".ci/vulncheck --strict") ||
		strings.Index(string(plan), ".ci/vulncheck --strict") > strings.Index(string(plan), ".ci/release") {
		t.Errorf("make release does not scan first: %v\n%s", err, plan)
	}
	for scanner, ok := range map[string]bool{"exit 0": true, "echo 'dial tcp: no such host'; exit 1": false,
		"echo 'Vulnerability #1: GO-1'; exit 3": false} {
		out, err := exec.Command(repo(".ci/vulncheck"), "--strict", "sh", "-c", scanner).CombinedOutput()
		if (err == nil) != ok {
			t.Errorf("%s: %v\n%s", scanner, err, out)
		}
	}
}
