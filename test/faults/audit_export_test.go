//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/auditexport"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// collected is what a receiver of the audit has stored, as lines.
type collected struct {
	mu    sync.Mutex
	lines [][]byte
}

func (r *collected) add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, bytes.Clone(line))
}

func (r *collected) text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(bytes.Join(r.lines, []byte("\n")), '\n')
}

// syslogReceiver is a receiver of RFC 5425.
type syslogReceiver struct {
	collected
	addr   string
	config *tls.Config
	ca     string // file

	listener net.Listener
	conns    map[net.Conn]bool
	wg       sync.WaitGroup
}

// newSyslogReceiver makes a receiver with a certificate for a name that is not its address.
func newSyslogReceiver(t *testing.T) *syslogReceiver {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "siem"},
		DNSNames: []string{"siem.example.com"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &syslogReceiver{addr: "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)), ca: ca,
		config: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
}

func (r *syslogReceiver) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.listener, r.conns = l, map[net.Conn]bool{}
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns[c] = true
			r.mu.Unlock()
			r.wg.Go(func() { r.serve(c) })
		}
	})
}

// serve reads messages until the sender ends TLS, and then ends it, too.
func (r *syslogReceiver) serve(c net.Conn) {
	conn := tls.Server(c, r.config)
	in := bufio.NewReader(conn)
	for {
		length, err := in.ReadString(' ')
		if err != nil {
			_ = conn.Close()
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil || n <= 0 || n > 8192 {
			r.add([]byte("a message begins with the length " + length))
			_ = c.Close()
			return
		}
		msg := make([]byte, n)
		if _, err := io.ReadFull(in, msg); err != nil {
			_ = c.Close()
			return
		}
		r.add(msg)
	}
}

// kill ends the receiver as a crash does: connections are reset.
func (r *syslogReceiver) kill() {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// hookReceiver is a receiver of the webhook. It rejects every third request after it has stored the rows.
type hookReceiver struct {
	collected
	addr   string
	secret []byte
	server *http.Server
	asked  int
	forged int
}

func (r *hookReceiver) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(l) }()
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.asked++
	asked := r.asked
	at := req.Header.Get(auditexport.HeaderTimestamp)
	if req.Header.Get(auditexport.HeaderSignature) != "sha256="+auditexport.Sign(r.secret, at, body) {
		r.forged++
	}
	r.mu.Unlock()

	var batch struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(body, &batch); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, row := range batch.Rows {
		r.add(row)
	}
	if asked%3 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// TestTR10LiveExport: the receivers of the audit are killed, and the server is killed with SIGKILL. Operations go on
// meanwhile. In the end every receiver has every row in order, and a row that is taken away or changed is found.
func TestTR10LiveExport(t *testing.T) {
	t.Parallel() // it mostly waits
	// Start the receivers and the server.
	syslog := newSyslogReceiver(t)
	syslog.start(t)
	hook := &hookReceiver{addr: "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)), secret: []byte("0123456789abcdef0123")}
	hook.start(t)
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(secret, append(hook.secret, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	s := ft.StartServer(t, "", "--audit-syslog", syslog.addr, "--audit-syslog-ca", syslog.ca, "--audit-syslog-name",
		"siem.example.com", "--audit-webhook", "http://"+hook.addr+"/audit", "--audit-webhook-secret-file", secret,
		"--audit-file", file)
	operate := func(n int) {
		for range n {
			s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": "x"}, "op_type": 1,
				"hosts": []ft.J{ft.Host(1)}})
		}
	}
	operate(5)
	sources := map[string]func() []byte{"syslog": syslog.text, "webhook": hook.text, "file": func() []byte {
		b, _ := os.ReadFile(file)
		return b
	}}
	awaitExports(t, s, sources)

	// Kill the receivers. Operations are accepted all the same, and the server says that it is behind.
	syslog.kill()
	if err := hook.server.Close(); err != nil {
		t.Fatal(err)
	}
	operate(20)
	ft.Until(t, time.Minute, func() string { _, body := s.Get(t, "/readyz"); return body }, func() bool {
		_, body := s.Get(t, "/readyz")
		return strings.Contains(body, "audit export syslog fails") && strings.Contains(body, "audit export webhook fails")
	})
	if _, metrics := s.Get(t, "/metrics"); !strings.Contains(metrics, `gozzard_audit_export_failures_total{export="syslog"}`) ||
		strings.Contains(metrics, `gozzard_audit_export_failures_total{export="syslog"} 0`) {
		t.Error("the failures are not counted")
	}

	// Kill the server in the middle, with half a line in the file, as after a loss of power.
	operate(3)
	s.Kill(syscall.SIGKILL)
	appendTo(t, file, `{"seq":99,"at":"20`)
	syslog.start(t)
	t.Cleanup(syslog.kill)
	hook.start(t)
	t.Cleanup(func() { _ = hook.server.Shutdown(context.WithoutCancel(t.Context())) })
	s.Again()
	s.AwaitReady()
	operate(5)

	// Everybody has everything.
	head := awaitExports(t, s, sources)
	if hook.forged > 0 {
		t.Errorf("%d requests to the webhook have a wrong signature", hook.forged)
	}
	for name, text := range sources {
		checkExport(t, name, text(), head)
	}
}

// awaitExports waits until every receiver has the newest row, and returns it as ROW:HASH.
func awaitExports(t *testing.T, s *ft.Server, sources map[string]func() []byte) (head string) {
	t.Helper()
	var missing string
	ft.Until(t, 2*time.Minute, func() string { return missing + "\n" + s.Output() }, func() bool {
		var page struct {
			Head struct {
				Seq  int64
				Hash string
			}
		}
		if _, body := s.Get(t, "/api/v1/audit?limit=1"); json.Unmarshal([]byte(body), &page) != nil {
			return false
		}
		head = fmt.Sprintf("%d:%s", page.Head.Seq, page.Head.Hash)
		for name, text := range sources {
			if !bytes.Contains(text(), []byte(`"hash":"`+page.Head.Hash+`"`)) {
				missing = name + " does not have row " + head
				return false
			}
		}
		return true
	})
	return head
}

// checkExport verifies what a receiver has, and that it would find what is wrong with it.
func checkExport(t *testing.T, name string, text []byte, head string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	verify := func(lines []string) (string, error) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(ft.Binary(t), "audit", "verify-export", "--expect", head, path).CombinedOutput()
		return string(out), err
	}

	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	out, err := verify(lines)
	if err != nil || !strings.Contains(out, "rows from the first row of the audit") {
		t.Errorf("%s: %v: %s", name, err, out)
	}
	t.Logf("%s: %s", name, out)

	// Take a row away, wherever it came.
	middle := lines[len(lines)/2]
	row := middle[strings.Index(middle, `{"seq":`):strings.Index(middle, `,"at"`)]
	var without, changed []string
	for _, l := range lines {
		if !strings.Contains(l, row+",") {
			without = append(without, l)
		}
		changed = append(changed, strings.Replace(l, `"act":"operate:`, `"act":"0perate:`, 1))
	}
	if out, err := verify(without); err == nil || !strings.Contains(out, "rows are missing") {
		t.Errorf("%s without a row: %v: %s", name, err, out)
	}
	if out, err := verify(changed); err == nil || !strings.Contains(out, "was changed") {
		t.Errorf("%s with changed rows: %v: %s", name, err, out)
	}
	if out, err := verify(lines[:len(lines)/3]); err == nil || !strings.Contains(out, "expected is") {
		t.Errorf("%s without its end: %v: %s", name, err, out)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
