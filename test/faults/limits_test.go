//go:build linux

package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// limited is a server of the built program with the limits that it has by default.
type limited struct {
	*ft.Server
	t *testing.T
}

func startLimited(t *testing.T, extra ...string) *limited {
	t.Helper()
	return &limited{ft.StartLimitedServer(t, filepath.Join(t.TempDir(), "data"), extra...), t}
}

// cli runs a command as the admin and returns what it prints.
func (s *limited) cli(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(ft.Binary(s.t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(s.Data, "credentials.json"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("gozzard %q: %v: %s", args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// appCaller calls a server as an app.
type appCaller struct {
	s                 *limited
	app, secret, user string
	client            *http.Client
}

// admin is the app that may do everything.
func (s *limited) admin() *appCaller {
	return &appCaller{s: s, app: s.Cred.AppCode, secret: s.Cred.Secret, user: s.Cred.Username, client: http.DefaultClient}
}

// create makes an app that names its users, with further flags.
func (s *limited) create(app string, flags ...string) *appCaller {
	s.t.Helper()
	flags = append(flags, ft.Known(s.t, "app create", "--asserts-users", "--unknown-users")...)
	args := append([]string{"app", "create", app}, flags...)
	return &appCaller{s: s, app: app, secret: s.cli(args...), user: "someone", client: http.DefaultClient}
}

// operator makes an app that may operate everything but is not admin.
func (s *limited) operator(app string) *appCaller {
	s.t.Helper()
	return s.create(app, ft.Known(s.t, "app create", "--role=operator", "--account=root")...)
}

// as is the caller with another user.
func (c *appCaller) as(user string) *appCaller {
	other := *c
	other.user = user
	return &other
}

// send sends a request to any path, with the credentials in the header.
func (c *appCaller) send(method, path string, body any, header ...string) (int, string) {
	c.s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	req, err := http.NewRequest(method, c.s.Cred.URL+path, bytes.NewReader(text))
	if err != nil {
		c.s.t.Fatal(err)
	}
	cred, err := json.Marshal(ft.J{"bk_app_code": c.app, "bk_app_secret": c.secret, "bk_username": c.user})
	if err != nil {
		c.s.t.Fatal(err)
	}
	req.Header.Set("X-Bkapi-Authorization", string(cred))
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	res, err := c.client.Do(req)
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// esb sends a call of BlueKing and returns its code.
func (c *appCaller) esb(name string, body ft.J) (int, string) {
	c.s.t.Helper()
	_, text := c.send(http.MethodPost, "/api/c/compapi/v2/gse/"+name+"/", body)
	var e struct{ Code int }
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		c.s.t.Fatalf("%s: %v in %s", name, err, text)
	}
	return e.Code, text
}

// from is an HTTP client with its own address on loopback.
func from(ip string) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}}
}

// hostPort is the address of the API.
func (s *limited) hostPort() string { return strings.TrimPrefix(s.Cred.URL, "http://") }

// dialFrom connects to an address from an address of loopback.
func dialFrom(ip, addr string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}).Dial("tcp", addr)
}

// raw sends bytes on a new connection and returns what comes back until the server closes it.
func (s *limited) raw(text string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", s.hostPort())
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		s.t.Fatalf("%v after %s", err, b)
	}
	return string(b)
}

// names are n names of processes.
func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}
