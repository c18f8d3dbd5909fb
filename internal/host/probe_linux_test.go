package host_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

// TestProbe makes health checks by TCP and HTTP, and tries to make the agent reach another host.
func TestProbe(t *testing.T) {
	f := newHost(t)
	var outside int
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/secret", http.StatusFound) })
	mux.HandleFunc("/secret", func(http.ResponseWriter, *http.Request) { outside++ })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	web := httptest.NewServer(mux)
	defer web.Close()
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	port := strconv.Itoa(web.Listener.Addr().(*net.TCPAddr).Port)

	for _, c := range []struct {
		control gozzard.Control
		want    string // "" means healthy
	}{
		{gozzard.Control{HealthHTTP: web.URL + "/ok"}, ""},
		{gozzard.Control{HealthHTTP: "http://localhost:" + port + "/ok"}, ""},
		{gozzard.Control{HealthHTTP: secure.URL + "/ok"}, ""},
		{gozzard.Control{HealthHTTP: web.URL + "/away"}, ""},
		{gozzard.Control{HealthHTTP: web.URL + "/bad"}, "answers with 502"},
		{gozzard.Control{HealthHTTP: web.URL + "/slow"}, "deadline exceeded"},
		{gozzard.Control{HealthHTTP: "http://192.0.2.1/"}, "192.0.2.1 is not an address of this host"},
		{gozzard.Control{HealthHTTP: "http://169.254.169.254/latest"}, "is not an address of this host"},
		{gozzard.Control{HealthHTTP: "http://0.0.0.0:" + port + "/ok"}, "is not an address of this host"},
		{gozzard.Control{HealthHTTP: "http://gozzard.example/"}, "is not an IP address"},
		{gozzard.Control{HealthHTTP: "file:///etc/passwd"}, "is not a URL"},
		{gozzard.Control{HealthTCP: "127.0.0.1:" + port}, ""},
		{gozzard.Control{HealthTCP: "localhost:" + port}, ""},
		{gozzard.Control{HealthTCP: "[::ffff:127.0.0.1]:" + port}, ""},
		{gozzard.Control{HealthTCP: "127.0.0.1:1"}, "refused"},
		{gozzard.Control{HealthTCP: "192.0.2.1:80"}, "is not an address of this host"},
		{gozzard.Control{}, "has no check"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f.Probe(ctx, &c.control)
		cancel()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.control, err, c.want)
		}
	}
	if outside != 0 {
		t.Error("a check followed a redirect")
	}
}

// TestLogBounds checks that the bounds of a definition hold, also for an agent that starts again before the process does.
func TestLogBounds(t *testing.T) {
	f := newHost(t)
	k, s := f.key("a"), f.spec("x")
	s.Logs = gozzard.Logs{Size: 64 << 10, Keep: 2}
	print := func() { f.run(k, s, true, "head -c 70000 /dev/zero | tr '\\0' x") }
	rotated := func() int {
		all, err := filepath.Glob(f.logDir(k) + "/0*.log")
		check(t, err)
		return len(all)
	}
	for range 4 {
		print()
		host.Tidy(f.Host)
	}
	if n := rotated(); n != 2 {
		t.Errorf("%d old files", n)
	}

	check(t, f.Close())
	f.Host = f.open()
	if got := content(t, f.logDir(k)+"/bounds"); got != "65536 2 0" {
		t.Error(got)
	}
	write(t, f.logDir(k)+"/current.log", strings.Repeat("y", 70_000))
	host.Tidy(f.Host)
	if size := len(content(t, f.logDir(k)+"/current.log")); size != 0 || rotated() != 2 {
		t.Errorf("%d bytes and %d old files: the next agent does not know the bounds", size, rotated())
	}

	// Without bounds the agent's apply again.
	s.Logs = gozzard.Logs{}
	for range 4 {
		print()
		host.Tidy(f.Host)
	}
	if size := len(content(t, f.logDir(k)+"/current.log")); size != 280_000 {
		t.Errorf("%d bytes", size)
	}
}

// TestLimitInBytesAndCores checks what the kernel is asked to enforce.
func TestLimitInBytesAndCores(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	base := t.TempDir()
	host.SetLimitRoot(f.Host, base)
	k := f.key("a")
	for _, c := range []struct {
		r        gozzard.Resource
		cpu, mem string
	}{
		{gozzard.Resource{CPUs: 0.5, MemB: 64 << 20}, "50000 100000", "67108864"},
		{gozzard.Resource{CPUs: 0.5, CPU: 1e-3, MemB: 1 << 50, Mem: 1e-9}, "1000 100000", "1048576"},
		{gozzard.Resource{CPUs: 1e-9, CPU: 100, MemB: 2 << 20, Mem: 100}, "1000 100000", "2097152"},
	} {
		for _, file := range []string{"cpu.max", "memory.max", "memory.high"} {
			path := filepath.Join(base, host.KeyFolder(k), file)
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			write(t, path, "")
		}
		c.r.Enforce = true
		if mode, err := f.Limit(k, c.r); mode != "cgroup2" || err != nil {
			t.Fatalf("%q %v", mode, err)
		}
		if got := content(t, filepath.Join(base, host.KeyFolder(k), "cpu.max")); got != c.cpu {
			t.Errorf("%+v: cpu %s", c.r, got)
		}
		if got := content(t, filepath.Join(base, host.KeyFolder(k), "memory.max")); got != c.mem {
			t.Errorf("%+v: memory %s", c.r, got)
		}
	}
}
