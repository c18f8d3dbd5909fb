//go:build linux

package faults_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// hugeRequest is an operate_proc_multi with 100,000 full definitions, some 65 MB.
func hugeRequest(t *testing.T, a *ft.API) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q,"proc_operate_req":[`, a.Cred.AppCode,
		a.Cred.Secret, a.Cred.Username)
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"meta":{"namespace":"gse","name":"process-%d"},"op_type":0,"hosts":[{"ip":"127.0.0.1",`+
			`"bk_cloud_id":0,"bk_supplier_id":0}],"spec":{"identity":{"proc_name":"service","setup_path":"/data/service",`+
			`"pid_path":"/data/service/pid","user":"root"},"control":{"start_cmd":"./start.sh %s","stop_cmd":"./stop.sh",`+
			`"restart_cmd":"./restart.sh","reload_cmd":"./reload.sh","kill_cmd":"./kill.sh"},"resource":{"cpu":30,"mem":20},`+
			`"monitor_policy":{"auto_type":1,"start_check_secs":5,"op_timeout":60}}}`, i, strings.Repeat("x", 200))
	}
	b.WriteString("]}")
	if b.Len() < 60<<20 {
		t.Fatalf("the request has only %d bytes", b.Len())
	}
	return b.Bytes()
}

// V13: a request that is far too large gets an answer in words on every door, also from clients that send everything
// before they read, and the server needs no memory for it.
func TestV13HugeRequest(t *testing.T) {
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	body := hugeRequest(t, s.API)
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	path := "/api/c/compapi/v2/gse/operate_proc_multi/"
	before := s.RSS()

	// The client of Go.
	answers := 0
	for range 4 {
		ans, err := s.Post(path, body, nil)
		if err != nil || ans.Code != 1306406 || !strings.Contains(ans.Message, "more than 40 MiB") {
			t.Fatalf("Go: %s, %v", ans.Raw, err)
		}
		answers++
	}

	// A client that sends everything, and only then reads.
	for range 4 {
		if text := sendThenRead(t, s.Cred.URL, path, body); !strings.Contains(text, "more than 40 MiB") {
			t.Fatalf("send, then read: %s", text)
		}
		answers++
	}

	// curl, with and without waiting for "100 Continue".
	for _, expect := range []string{"Expect:", "Expect: 100-continue"} {
		out, err := exec.CommandContext(t.Context(), "curl", "-sS", "-H", expect, "--data-binary", "@"+file,
			s.Cred.URL+path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "more than 40 MiB") {
			t.Fatalf("curl: %s, %v", out, err)
		}
		answers++
	}

	// The native door, and other routes.
	cred := fmt.Sprintf(`X-Bkapi-Authorization: {"bk_app_code":%q,"bk_app_secret":%q,"bk_username":%q}`, s.Cred.AppCode,
		s.Cred.Secret, s.Cred.Username)
	for path, want := range map[string]string{"/api/v1/operations": "4 MiB",
		"/api/c/compapi/v2/gse/operate_proc_v2/": "4 MiB"} {
		if text := sendThenRead(t, s.Cred.URL, path, body, cred); !strings.HasPrefix(text, "HTTP/1.1 ") ||
			!strings.Contains(text, want) {
			t.Fatalf("%s: %s", path, text)
		}
		answers++
	}

	s.AwaitReady()
	grown := s.RSS() - before
	t.Logf("fault V13: %d requests of %d MB answered; the memory of the server grew by %d MiB", answers, len(body)>>20,
		grown>>20)
	if grown > int64(len(body)) {
		t.Fatal("the server keeps more memory than one of these requests")
	}
}

// sendThenRead sends a whole request before it reads a byte of the answer, as many clients do.
func sendThenRead(t *testing.T, server, path string, body []byte, header ...string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}

	defer c.Close()
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n", path,
		u.Host, len(body), strings.Join(append(header, ""), "\r\n"))
	if _, err := c.Write(append([]byte(head), body...)); err != nil {
		t.Fatalf("%s: the server closed the connection while the request was sent: %v", path, err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%s: no answer: %v", path, err)
	}
	return string(b)
}

// V14: a server that is out of descriptors says so once, not for each try, and serves again when some are free.
func TestV14NoDescriptors(t *testing.T) {
	s := ft.StartServer(t, filepath.Join(t.TempDir(), "data"))
	s.Kill(syscall.SIGTERM)
	s.Through("prlimit", "--nofile=64:64")
	s.Again()
	s.AwaitReady()

	// Half-open requests take all descriptors.
	u, err := url.Parse(s.Cred.URL)
	if err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			break // the queue of the kernel is full, too
		}
		open = append(open, c)
		_, _ = c.Write([]byte("POST /api/v1/operations HTTP/1.1\r\n")) // it may be closed already
	}
	ft.Until(t, time.Minute, s.Output, func() bool {
		return strings.Contains(s.Output(), "cannot accept connections of callers")
	})

	for _, c := range open {
		_ = c.Close()
	}
	s.AwaitReady()
	if n := strings.Count(s.Output(), "cannot accept connections of callers"); n != 1 {
		t.Fatalf("the log says it %d times", n)
	}
	t.Logf("fault V14: %d half-open requests, one line in the log, served again after they closed", len(open))
}
