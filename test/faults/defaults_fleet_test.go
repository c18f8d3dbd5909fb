//go:build linux

package faults_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// plainFleet is a server and an agent with default settings, except addresses and folders.
type plainFleet struct {
	t      *testing.T
	data   string
	listen string
	agents string
	server *ft.Program

	state string // folder of the agent
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
	f.listen, f.agents = net.JoinHostPort(ip, strconv.Itoa(ft.FreePort(t))),
		net.JoinHostPort(ip, strconv.Itoa(ft.FreePort(t)))
	f.server = ft.Start(t, "server", nil, append([]string{"server", "--data", f.data, "--listen", f.listen,
		"--agent-listen", f.agents}, args...)...)
	ft.Until(t, time.Minute, f.server.Output, func() bool {
		b, err := os.ReadFile(f.credentials())
		return err == nil && json.Unmarshal(b, &f.cred) == nil && strings.Contains(f.server.Output(), `"msg":"server started"`)
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

// agentAgain starts the agent again and waits until its new session is open.
func (f *plainFleet) agentAgain(t *testing.T) {
	t.Helper()
	before := f.agent.Sessions()
	f.agent.Again()
	ft.Until(t, time.Minute, f.agent.Output, func() bool { return f.agent.Sessions() > before })
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

// ask sends a request. headers are pairs of name and value.
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
	return f.ask(t, method, path, body, append([]string{authorizationHeader,
		f.authorization(f.cred.App, f.cred.Secret)}, headers...)...)
}
