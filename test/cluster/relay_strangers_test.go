//go:build linux

package cluster_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

// identity reads a key with its certificate.
func identity(t *testing.T, text string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// identityOf reads the key and the certificate of a host.
func (i *installation) identityOf(dir string) tls.Certificate {
	i.t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "enrolment.json"))
	if err != nil {
		i.t.Fatal(err)
	}
	var m struct {
		Identity string `json:"identity"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		i.t.Fatal(err)
	}
	return identity(i.t, m.Identity)
}

// as is a client that checks nothing and shows certificates.
func as(pairs ...tls.Certificate) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, ServerName: "server.gozzard.internal", Certificates: pairs}
}

// speaks says a sentence of NATS as the owner of a certificate, and returns everything that it is told.
func speaks(t *testing.T, c net.Conn, conf *tls.Config, words ...string) string {
	t.Helper()
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	secured := tls.Client(c, conf)
	if err := secured.Handshake(); err != nil {
		return "handshake: " + err.Error()
	}
	in := bufio.NewReader(secured)
	if _, err := in.ReadString('\n'); err != nil { // INFO, after the check of the certificate
		return "info: " + err.Error()
	}
	said := `CONNECT {"verbose":false,"pedantic":false,"protocol":1,"name":"` + enrol.Machine() + `/y"}` + "\r\n" + strings.Join(append(words, "PING"), "\r\n") + "\r\n"
	if _, err := io.WriteString(secured, said); err != nil {
		return "write: " + err.Error()
	}
	var told strings.Builder
	for {
		line, err := in.ReadString('\n')
		told.WriteString(line)
		if err != nil || strings.HasPrefix(line, "PONG") {
			return told.String()
		}
	}
}

func dialTo(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// streams are raw streams of the port for relays, as the owner of a certificate.
func streams(t *testing.T, m *member, pair tls.Certificate) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	tr := &http.Transport{TLSClientConfig: as(pair), Protocols: protocols}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// streamConn is a stream as a connection.
type streamConn struct {
	net.Conn // nil; deadlines are those of the request
	io.Reader
	io.Writer
	end func()
}

func (c streamConn) Read(b []byte) (int, error)      { return c.Reader.Read(b) }
func (c streamConn) Write(b []byte) (int, error)     { return c.Writer.Write(b) }
func (c streamConn) Close() error                    { c.end(); return nil }
func (c streamConn) SetDeadline(time.Time) error     { return nil }
func (c streamConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (c streamConn) SetWriteDeadline(time.Time) error { return nil }

// open opens a raw stream.
func open(t *testing.T, m *member, web *http.Client, path string) (net.Conn, error) {
	t.Helper()
	body, out := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+m.Flag("--relay-listen")+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gozzard-From", "192.0.2.7:4444")
	res, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body) // only for the text of the error
		_ = res.Body.Close()
		return nil, fmt.Errorf("%d: %s", res.StatusCode, b)
	}
	return streamConn{Reader: res.Body, Writer: out, end: func() { _, _ = out.Close(), res.Body.Close() }}, nil
}

// TestTS18Relays: what a relay, its certificate, and strangers at its ports cannot do.
func TestTS18Relays(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 1)
	a := i.servers[0]
	r := a.relay("plant", relayArea)
	agent := r.host(a, faultHost(1))
	a.online(faultHost(1), true)

	// A host of another cloud area, enrolled directly.
	other := filepath.Join(t.TempDir(), "other")
	foreign := a.token("token", "create", "--cloud", "4")
	i.denied("not valid here", "", "agent", "join", "--server", "https://"+r.api, "--token-file", foreign, "--data", other, "--ip", "10.4.0.1")
	a.cliLocal("agent", "join", "--server", a.Cred.URL, "--token-file", foreign, "--data", other, "--ip", "10.4.0.1")
	stranger, own := i.identityOf(other), identity(t, r.state().Member.Identity)
	local := i.identityOf(i.folders[agent])

	// It reaches the broker directly, but not through the relay of another area, neither through the real one nor with
	// streams that the owner of the relay's certificate opens.
	if got := speaks(t, dialTo(t, a.agent), as(stranger)); !strings.Contains(got, "PONG") {
		t.Errorf("a host of area 4 is not accepted directly: %s", got)
	}
	web := streams(t, a, own)
	through := func() net.Conn {
		c, err := open(t, a, web, "/relay/v1/agents")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]net.Conn{"the relay": dialTo(t, r.agents), "a raw stream": through()} {
		if got := speaks(t, c, as(stranger)); strings.Contains(got, "PONG") {
			t.Errorf("a host of area 4 is accepted through %s of area 3: %s", name, got)
		}
	}

	// The relay cannot be an agent of its own area either: not with its certificate, nor without one.
	for name, got := range map[string]string{
		"directly":                  speaks(t, dialTo(t, a.agent), as(own)),
		"through itself":            speaks(t, through(), as(own), "SUB op.3.* 1", "PUB res.3.x 1", "x"),
		"without a certificate":     speaks(t, through(), as()),
		"through the real one":      speaks(t, dialTo(t, r.agents), as(own)),
		"a stranger at its port":    speaks(t, dialTo(t, r.agents), as()),
		"a stranger at the brokers": speaks(t, dialTo(t, a.agent), as()),
	} {
		if strings.Contains(got, "PONG") {
			t.Errorf("the certificate of a relay is that of an agent, %s: %s", name, got)
		}
	}

	// The port for relays: no certificate, that of a host, other paths, a stream of nobody.
	for name, conf := range map[string]*tls.Config{"no certificate": as(), "a host": as(local)} {
		conf.NextProtos = []string{"h2"}
		c, err := tls.Dial("tcp", a.Flag("--relay-listen"), conf)
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			_, err = c.Read(make([]byte, 1)) // TLS 1.3 tells a client after its handshake
			_ = c.Close()
		}
		if err == nil {
			t.Errorf("the port for relays accepts %s", name)
		}
	}
	for path, want := range map[string]string{"/api/v1/hosts": "404", "/relay/v1/other": "404", "/metrics": "404"} {
		if _, err := open(t, a, web, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s at the port for relays: %v, want %s", path, err, want)
		}
	}

	// The certificate of a relay at the API: it is no caller, and no host that renews.
	for path, want := range map[string]int{"/api/v1/hosts": http.StatusUnauthorized, "/api/v1/enrol/renew": http.StatusUnauthorized} {
		if status := calls(t, a.Cred.URL+path, as(own), nil); status != want {
			t.Errorf("%s with the certificate of a relay: %d, want %d", path, status, want)
		}
	}

	// Through the relay, even an admin reaches only the routes of hosts.
	admin := func(req *http.Request) {
		req.Header.Set("X-Bkapi-Authorization", fmt.Sprintf(`{"bk_app_code":%q,"bk_app_secret":%q,"bk_username":"admin"}`,
			a.Cred.AppCode, a.Cred.Secret))
	}
	for path, want := range map[string]int{"/api/v1/hosts": http.StatusNotFound, "/healthz": http.StatusNotFound,
		"/metrics": http.StatusNotFound, "/api/v1/relays": http.StatusNotFound, "/api/v1/servers/join": http.StatusNotFound,
		"/api/v1/relays/join": http.StatusNotFound, "/api/v1/enrol/tokens": http.StatusNotFound,
		"/api/v1/enrol/releases/../../hosts": http.StatusNotFound, "/": http.StatusNotFound, "/join": http.StatusOK} {
		if status := calls(t, "https://"+r.api+path, as(), admin); status != want {
			t.Errorf("GET %s through the relay: %d, want %d", path, status, want)
		}
	}
	if status := calls(t, "https://"+r.api+"/join", as(stranger), nil); status != http.StatusForbidden {
		t.Errorf("a host of area 4 calls through the relay of area 3: %d", status)
	}

	// A token is valid once, and needs an admin.
	token := a.token("relays", "token", "twice", "--areas", "5")
	folder := filepath.Join(t.TempDir(), "relay")
	a.cliLocal("relay", "join", "--server", a.Cred.URL, "--token-file", token, "--data", filepath.Join(t.TempDir(), "first"))
	i.denied("not valid here", folder, "relay", "join", "--server", a.Cred.URL, "--token-file", token, "--data", folder)
	i.smallerRights(a, "relays", "token", "more", "--areas", "5")

	// Everything goes on.
	i.operate(faultHost(1), "web")
	a.online(faultHost(1), true)
	fmt.Println("attack TS18: hosts of other cloud areas, the certificate of a relay as that of a host or caller, and strangers at " +
		"the ports of relays: 0 accepted")
}

// calls sends a GET, or a POST to routes of hosts, and returns the status.
func calls(t *testing.T, url string, conf *tls.Config, edit func(*http.Request)) int {
	t.Helper()
	method := http.MethodGet
	if strings.HasSuffix(url, "/renew") {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	tr := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}
