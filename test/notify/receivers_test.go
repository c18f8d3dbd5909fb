//go:build linux

package notify_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// mailServer is aiosmtpd with STARTTLS and AUTH. It prints each mail as a line of JSON.
const mailServer = `
import asyncio, json, ssl, sys
from email import message_from_bytes, policy
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

class Handler:
    async def handle_DATA(self, server, session, envelope):
        m = message_from_bytes(envelope.content, policy=policy.default)
        print(json.dumps({"tls": session.ssl is not None, "user": session.authenticated, "to": envelope.rcpt_tos,
            "from": envelope.mail_from, "headers": [[k, str(v)] for k, v in m.items()], "body": m.get_content()}), flush=True)
        return "250 taken"

def check(server, session, envelope, mechanism, data):
    return AuthResult(success=isinstance(data, LoginPassword) and data.login == b"gozzard" and data.password == b"mail password")

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
Controller(Handler(), hostname="127.0.0.1", port=int(sys.argv[1]), tls_context=context, require_starttls=True,
    authenticator=check, auth_required=True).start()
print("ready", flush=True)
asyncio.new_event_loop().run_forever()
`

// mail is a mail as the server took it.
type mail struct {
	TLS     bool        `json:"tls"`
	User    bool        `json:"user"`
	From    string      `json:"from"`
	To      []string    `json:"to"`
	Headers [][2]string `json:"headers"`
	Body    string      `json:"body"`
}

// post office is a running mail server.
type postOffice struct {
	addr, ca string

	mu    sync.Mutex
	mails []mail
}

// need skips the test on a machine without a program of Debian.
func need(t *testing.T, name string, args ...string) {
	t.Helper()
	if err := exec.Command(name, args...).Run(); err != nil {
		t.Skipf("%s: %v (.ci/deps installs it)", name, err)
	}
}

// program starts a program that is killed at the end of the test.
func program(t *testing.T, out io.Writer, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

func newPostOffice(t *testing.T) *postOffice {
	t.Helper()
	need(t, "/usr/bin/python3", "-c", "import aiosmtpd")
	cert, key := certificate(t)
	port := fmt.Sprint(ft.FreePort(t))
	p := &postOffice{addr: "127.0.0.1:" + port, ca: cert}
	r, w := io.Pipe()
	t.Cleanup(func() { _ = r.Close() })
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if lines.Text() == "ready" {
				close(ready)
				continue
			}
			var m mail
			if err := json.Unmarshal(lines.Bytes(), &m); err == nil {
				p.mu.Lock()
				p.mails = append(p.mails, m)
				p.mu.Unlock()
			}
		}
	}()
	program(t, w, "/usr/bin/python3", "-c", mailServer, port, cert, key)
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the mail server does not start")
	}
	return p
}

func (p *postOffice) got() []mail {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]mail(nil), p.mails...)
}

// certificate makes a certificate of 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// startAlertmanager runs Debian's Alertmanager and gives its address.
func startAlertmanager(t *testing.T) (url string) {
	t.Helper()
	need(t, "prometheus-alertmanager", "--version")
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ft.FreePort(t))
	program(t, os.Stderr, "prometheus-alertmanager", "--config.file", config, "--storage.path", dir, "--web.listen-address", addr,
		"--cluster.listen-address", "", "--log.level", "error")
	ft.Until(t, time.Minute, func() string { return "Alertmanager does not start" }, func() bool {
		res, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return "http://" + addr
}

// managed are the alerts that Alertmanager has.
func managed(t *testing.T, url string) (list []alert) {
	t.Helper()
	res, err := http.Get(url + "/api/v2/alerts?active=true")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var raw []struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		EndsAt      time.Time         `json:"endsAt"`
	}
	if err := json.NewDecoder(res.Body).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	for _, a := range raw {
		list = append(list, alert{Labels: a.Labels, Annotations: a.Annotations, EndsAt: a.EndsAt})
	}
	return list
}

// TestAlertmanagerAndMail: a crash loop, a lost host, an exceeded limit, a failed task and a failing health check reach the
// real Alertmanager, which forgets those that end, and a real mail server over STARTTLS with AUTH. Names that try to add
// headers or markup are text.
func TestAlertmanagerAndMail(t *testing.T) {
	manager, office := startAlertmanager(t), newPostOffice(t)
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8", "--host-lost-after", "5s")
	cli(t, s, "notify", "receivers", "create", "manager", "--receiver-kind", "alertmanager", "--to-url", manager)
	cli(t, s, "notify", "receivers", "create", "mail", "--receiver-kind", "mail", "--mail-server", office.addr, "--from",
		"gozzard@example.com", "--mail-to", "night@example.com,day@example.com", "--mail-user", "gozzard", "--mail-password-file",
		secretFile(t, "mail password"), "--ca-file", office.ca, "--language", "zh")
	cli(t, s, "notify", "subscriptions", "create", "all", "--receiver", "manager,mail", "--wait", "1s", "--interval", "1s")

	// Make trouble. The output of a start becomes the text of an alert.
	startAgent(t, s, 1)
	gone := startAgent(t, s, 2)
	start(t, s, 1, "loop", "echo $$ > pid; exec sleep 0.2", nil)
	start(t, s, 1, "sick", "echo $$ > pid; exec sleep 10000", ft.J{"health_cmd": "test -e well", "health_interval": 1, "health_threshold": 1})
	start(t, s, 1, "fat", "echo $$ > pid; exec sleep 10000", ft.J{"mem": 0.0001, "act": "alert", "samples": 1})
	start(t, s, 1, "evil", `printf 'x\r\nBcc: eve@example.com\r\n\r\n<b>@all'; exit 3`, nil)
	gone.Kill(syscall.SIGKILL)

	// Alertmanager has them.
	active := func(kind string) bool {
		for _, a := range managed(t, manager) {
			if a.Labels["kind"] == kind {
				return true
			}
		}
		return false
	}
	for _, kind := range []string{"crash_loop", "health_failing", "limit_exceeded", "task_failed", "start_failed", "host_lost"} {
		ft.Until(t, 2*time.Minute, func() string { return fmt.Sprintf("no %s: %+v", kind, managed(t, manager)) },
			func() bool { return active(kind) })
	}
	gone.Again()
	ft.Until(t, time.Minute, func() string { return "the lost host is still active" }, func() bool { return !active("host_lost") })

	// The mails.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("mails: %+v", office.got()) }, func() bool {
		all := ""
		for _, m := range office.got() {
			all += m.Body
		}
		for _, word := range []string{"反复崩溃", "主机失联", "超出资源限制", "任务失败", "健康检查失败", "启动失败", "已恢复"} {
			if !strings.Contains(all, word) {
				return false
			}
		}
		return true
	})
	for _, m := range office.got() {
		if english := unspoken(m.Body); english != "" {
			t.Errorf("%q is English in %s", english, m.Body)
		}
		if !m.TLS || !m.User || m.From != "gozzard@example.com" || len(m.To) != 2 {
			t.Errorf("%+v", m)
		}
		subject := ""
		for _, h := range m.Headers {
			if strings.EqualFold(h[0], "Subject") {
				subject = strings.TrimSpace(h[1]) // it may begin on the next line
			}
			if strings.EqualFold(h[0], "Bcc") || strings.EqualFold(h[0], "Cc") {
				t.Errorf("a header was added: %v", h)
			}
		}
		if !strings.HasPrefix(subject, "【Gozzard】") || !strings.ContainsAny(subject, "告警已恢复") {
			t.Errorf("the subject is %q", subject)
		}
	}
}

// unspoken finds three English words in a row in a Chinese text. The output of a program stays as it is.
func unspoken(text string) string {
	return threeWords.FindString(text)
}

var threeWords = regexp.MustCompile(`[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}`)

// TestMailWithoutTLSStaysHere: mail without TLS goes to this machine only, and a mail server without STARTTLS gets nothing.
func TestMailWithoutTLSStaysHere(t *testing.T) {
	s := ft.StartServer(t, "", "--notify-allow", "127.0.0.0/8")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var heard bytes.Buffer
	var mu sync.Mutex
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 plain ESMTP\r\n")
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				mu.Lock()
				heard.WriteString(lines.Text() + "\n")
				mu.Unlock()
				_, _ = io.WriteString(c, "250-plain\r\n250-AUTH PLAIN LOGIN\r\n250 HELP\r\n")
			}
			_ = c.Close()
		}
	}()

	id := create(t, s, "notify", "receivers", "create", "mail", "--receiver-kind", "mail", "--mail-server", l.Addr().String(), "--from",
		"gozzard@example.com", "--mail-to", "night@example.com", "--mail-user", "gozzard", "--mail-password-file",
		secretFile(t, "mail password"))
	if out, err := tryCLI(t, s, "notify", "receivers", "test", id); err == nil {
		t.Errorf("a server without STARTTLS took a mail: %s", out)
	}
	mu.Lock()
	defer mu.Unlock()
	if text := heard.String(); !strings.HasPrefix(text, "EHLO") || strings.Contains(text, "AUTH") || strings.Contains(text, "MAIL") {
		t.Errorf("the server heard %s", text)
	}
}
