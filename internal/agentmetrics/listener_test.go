package agentmetrics_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/agentmetrics"
	"github.com/gozzard/gozzard/internal/supervise"
)

const token = "0123456789abcdef0123456789abcdef"

// served runs a listener with 500 processes and returns its address.
func served(t *testing.T, o agentmetrics.ListenOptions) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()

	lives := make([]supervise.Life, 500)
	for i := range lives {
		lives[i] = life(fmt.Sprint("process_", i))
	}
	o.Address = addr
	l, err := agentmetrics.NewListener(o, metricsOf(false, lives...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func tokenFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func scrape(t *testing.T, url, host, bearer string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if bearer != "" {
		r.Header.Set("Authorization", bearer)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// TestTI5MetricsOfAgents: metrics of an agent need its token, or a caller of the same machine that asks for it.
func TestTI5MetricsOfAgents(t *testing.T) {
	file := tokenFile(t, token+"\n", 0o600)
	withToken := "http://" + served(t, agentmetrics.ListenOptions{TokenFile: file}) + "/metrics"
	for bearer, want := range map[string]int{
		"Bearer " + token: 200, "": 401, "Bearer ": 401, "Bearer x" + token: 401, "Bearer " + token[:31]: 401,
		"Basic " + token: 401, "bearer": 401, token: 401,
	} {
		if status, body := scrape(t, withToken, "", bearer); status != want || (status == 200) != strings.Contains(body, "gozzard_process") {
			t.Errorf("%q: %d, want %d", bearer, status, want)
		}
	}

	// A new token counts at once, and a file that others may read lets nobody in.
	if err := os.WriteFile(file, []byte(strings.ToUpper(token)), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := scrape(t, withToken, "", "Bearer "+token); status != 401 {
		t.Errorf("the old token: %d", status)
	}
	if status, _ := scrape(t, withToken, "", "Bearer "+strings.ToUpper(token)); status != 200 {
		t.Errorf("the new token: %d", status)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _ := scrape(t, withToken, "", "Bearer "+strings.ToUpper(token)); status != 401 {
		t.Errorf("a token that others may read: %d", status)
	}

	// Without a token: this machine only, and not for pages of other sites whose name points here.
	local := "http://" + served(t, agentmetrics.ListenOptions{}) + "/metrics"
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "[::1]:1": 200, "evil.example:80": 401, "localhost.evil.example": 401} {
		if status, _ := scrape(t, local, host, ""); status != want {
			t.Errorf("Host %q: %d, want %d", host, status, want)
		}
	}
	if status, _ := scrape(t, strings.TrimSuffix(local, "/metrics")+"/debug/pprof/", "", ""); status != 404 {
		t.Errorf("there is more than metrics: %d", status)
	}
}

// TestListenOptions: settings that would show the metrics to everybody, or that cannot work, are rejected with what to do.
func TestListenOptions(t *testing.T) {
	good := tokenFile(t, token, 0o600)
	for _, c := range []struct {
		o    agentmetrics.ListenOptions
		want string
	}{
		{agentmetrics.ListenOptions{Address: "127.0.0.1:9436"}, ""},
		{agentmetrics.ListenOptions{Address: "[::1]:9436"}, ""},
		{agentmetrics.ListenOptions{Address: "localhost:9436"}, ""},
		{agentmetrics.ListenOptions{Address: "0.0.0.0:9436", TokenFile: good}, ""},
		{agentmetrics.ListenOptions{Address: "0.0.0.0:9436"}, "--metrics-token-file"},
		{agentmetrics.ListenOptions{Address: ":9436"}, "--metrics-token-file"},
		{agentmetrics.ListenOptions{Address: "[::]:9436"}, "--metrics-token-file"},
		{agentmetrics.ListenOptions{Address: "10.0.0.1:9436"}, "--metrics-token-file"},
		{agentmetrics.ListenOptions{Address: "127.0.0.1"}, "ADDRESS:PORT"},
		{agentmetrics.ListenOptions{Address: "127.0.0.1:0"}, "ADDRESS:PORT"},
		{agentmetrics.ListenOptions{Address: "evil.example:80", TokenFile: good}, "ADDRESS:PORT"},
		{agentmetrics.ListenOptions{Address: ":9436", TokenFile: tokenFile(t, token, 0o640)}, "chmod 600"},
		{agentmetrics.ListenOptions{Address: ":9436", TokenFile: tokenFile(t, "short", 0o600)}, "at least 16"},
		{agentmetrics.ListenOptions{Address: ":9436", TokenFile: tokenFile(t, strings.Repeat("x", 5000), 0o600)}, "at most"},
		{agentmetrics.ListenOptions{Address: ":9436", TokenFile: "/none"}, "no such file"},
		{agentmetrics.ListenOptions{Address: "127.0.0.1:9436", CertFile: "/none"}, "belong together"},
		{agentmetrics.ListenOptions{Address: "127.0.0.1:9436", CertFile: "/none", KeyFile: "/none"}, "certificate"},
	} {
		_, err := agentmetrics.NewListener(c.o, metricsOf(false), slog.New(slog.DiscardHandler))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestListenerURL(t *testing.T) {
	file := tokenFile(t, token, 0o600)
	for address, want := range map[string]string{"0.0.0.0:1": "http://10.0.0.1:1", ":1": "http://10.0.0.1:1",
		"10.0.0.2:1": "http://10.0.0.2:1", "[::]:1": "http://10.0.0.1:1", "localhost:1": "http://127.0.0.1:1"} {
		l, err := agentmetrics.NewListener(agentmetrics.ListenOptions{Address: address, TokenFile: file}, metricsOf(false),
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := l.URL(netip.MustParseAddr("10.0.0.1")); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

// TestTD35ScrapesAreBounded: callers that hold connections, send long headers, or read slowly cost a bounded number of
// places, and give them back.
func TestTD35ScrapesAreBounded(t *testing.T) {
	addr := served(t, agentmetrics.ListenOptions{TokenFile: tokenFile(t, token, 0o600)})
	url := "http://" + addr + "/metrics"

	// A header that is too long is rejected.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	if a, err := http.DefaultClient.Do(r); err == nil { // else the listener closed the connection before it was read
		a.Body.Close()
		if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 64 KiB: %d", a.StatusCode)
		}
	}

	// Strangers take all places; those beyond are closed at once.
	var held []net.Conn
	closed := 0
	for range 64 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	for _, c := range held {
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && !os.IsTimeout(err) {
			closed++
		}
	}
	if closed < 32 {
		t.Errorf("%d of 64 connections were closed, at least 32 expected", closed)
	}

	// Their places are free again after the time of a header.
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", token)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		line, _ := bufio.NewReader(c).ReadString('\n')
		c.Close()
		if strings.Contains(line, "200") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no scrape for a minute: %q", line)
		}
	}
}

// TestTD35SlowReaders: scrapes whose answer is not read hold the places of scrapes only as long as a scrape may take, and a
// scrape beyond is answered at once with 503.
func TestTD35SlowReaders(t *testing.T) {
	addr := served(t, agentmetrics.ListenOptions{})
	begun := time.Now()
	for range 12 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprint(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 20))
	}

	sawBusy := false
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		status, _ := scrape(t, "http://"+addr+"/metrics", "", "")
		sawBusy = sawBusy || status == http.StatusServiceUnavailable
		if sawBusy && status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("status %d a minute after the slow readers began (busy seen: %v)", status, sawBusy)
		}
	}
	if took := time.Since(begun); took > 40*time.Second {
		t.Errorf("slow readers kept the others out for %s", took)
	}
}
