//go:build linux

package fleettest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// enrolledFleet is a server with enrolled hosts. Each agent has its own program file.
type enrolledFleet struct {
	t      *testing.T
	s      *ft.Server
	c      *client.Client
	binary string
	cred   string
	bob    string // credentials of a second person
	hosts  []*enrolledHost
}

type enrolledHost struct {
	agent   *ft.Program
	program string
	state   string
	config  string
	pid     int
}

func startEnrolled(t *testing.T, hosts int) *enrolledFleet {
	t.Helper()
	data := filepath.Join(t.TempDir(), "server")
	f := &enrolledFleet{t: t, binary: ft.ProgramOf(t, ft.OldVersion), cred: filepath.Join(data, "credentials.json")}
	local := func() string { return "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)) }
	p := ft.Start(t, "server", nil, "server", "--data", data, "--listen", local(), "--agent-listen", local(),
		"--enrol", "--release-two-person",
		"--rate-app=0", "--max-failed-logins=0")
	f.s = &ft.Server{Program: p, API: (&ft.API{}).For(t), Data: data}
	var ca struct{ CA string }
	ft.Until(t, time.Minute, p.Output, func() bool {
		b, err := os.ReadFile(f.cred)
		return err == nil && json.Unmarshal(b, &f.s.Cred) == nil && json.Unmarshal(b, &ca) == nil &&
			strings.Contains(p.Output(), `"msg":"server started"`)
	})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca.CA))
	f.s.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(f.s.Client.CloseIdleConnections)
	f.s.AwaitReady()
	var err error
	f.c, err = client.New(f.s.Cred.URL, client.Credentials{AppCode: f.s.Cred.AppCode, AppSecret: f.s.Cred.Secret,
		Username: f.s.Cred.Username, CA: ca.CA})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.c.Close)
	f.bob = filepath.Join(t.TempDir(), "bob.json")
	password := filepath.Join(t.TempDir(), "password")
	put(t, password, []byte("correct horse battery staple\n"), 0o600)
	f.must("user", "create", "bob", "--password-file", password, "--role", "admin")
	f.must("user", "login", "bob", "--password-file", password, "--out", f.bob)

	for i := range hosts {
		f.hosts = append(f.hosts, f.join(i+1))
	}

	return f
}

// join enrols host 127.0.0.n and starts its agent.
func (f *enrolledFleet) join(n int) *enrolledHost {
	t := f.t
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	h := &enrolledHost{program: filepath.Join(dir, "gozzard"), state: filepath.Join(dir, "state"),
		config: filepath.Join(dir, "agent.yaml")}
	text, err := os.ReadFile(ft.ProgramOf(t, ft.OldVersion))
	if err != nil {
		t.Fatal(err)
	}

	put(t, h.program, text, 0o755)
	put(t, h.config, []byte("update-trial: 1m\n"), 0o600)

	if err := os.Mkdir(h.state, 0o700); err != nil {
		t.Fatal(err)
	}

	ft.AllowEverything(t, h.state)
	token := filepath.Join(dir, "token")
	put(t, token, []byte(f.must("token", "create")), 0o600)
	f.must("agent", "join", "--server", f.s.Cred.URL, "--token-file", token, "--data", h.state, "--ip",
		"127.0.0."+strconv.Itoa(n))
	before, had := os.LookupEnv("GOZZARD_BINARY")
	t.Setenv("GOZZARD_BINARY", h.program)
	h.agent = ft.Start(t, "agent"+strconv.Itoa(n), nil, "agent", "--data", h.state, "--config", h.config)

	if had {
		t.Setenv("GOZZARD_BINARY", before)
	}

	h.pid = h.agent.PID()
	f.s.AwaitOnline(t, n)
	return h
}

// try runs a command as the admin.
func (f *enrolledFleet) try(args ...string) (string, error) {
	cmd := exec.Command(f.binary, args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+f.cred)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		out = append(out, stderr.Bytes()...)
	}
	return string(out), err
}

func (f *enrolledFleet) must(args ...string) string {
	f.t.Helper()
	out, err := f.try(args...)
	if err != nil {
		f.t.Fatalf("gozzard %q: %v\n%s", args, err, out)
	}
	return out
}

// upgrade starts an upgrade as one person, approves it as another one, and waits until it ends.
func (f *enrolledFleet) upgrade(version string, more ...string) client.Upgrade {
	f.t.Helper()

	if out := f.must(append([]string{"release", "roll", version}, more...)...); !strings.Contains(out,
		"another person must approve it") {
		f.t.Errorf("begun by one person: %s", out)
	}

	if out, err := f.try("release", "approve", version); err == nil ||
		!strings.Contains(out, "another person must approve it") {
		f.t.Errorf("approved by the same person: %v, %s", err, out)
	}

	f.must("release", "approve", version, "--credentials", f.bob)
	var r client.Upgrade
	ft.Until(f.t, 2*time.Minute, func() string { return fmt.Sprintf("upgrade to %s: %+v", version, r) }, func() bool {
		list, err := f.c.Upgrades(f.t.Context(), 1)
		if err == nil && len(list) == 1 {
			r = list[0]
		}
		return r.Version == version && r.State != "running"
	})

	if out := f.must("release", "status"); !strings.Contains(out, "release "+version+" is "+r.State) {
		f.t.Error(out)
	}

	return r
}

// versions are the running versions, by host.
func (f *enrolledFleet) versions() (list []string) {
	f.t.Helper()
	page, err := f.c.Hosts(f.t.Context(), 0, 10)
	if err != nil {
		f.t.Fatal(err)
	}
	slices.SortFunc(page.Hosts, func(a, b client.HostInfo) int { return strings.Compare(a.Addrs[0].IP, b.Addrs[0].IP) })
	for _, h := range page.Hosts {
		list = append(list, h.Version)
	}
	return list
}

// TestTE8ServerUpdate: a server brings a release to its hosts, and nothing that their own keys have not signed. A host
// that rejects the release or goes back stops the upgrade. Agents keep their pids, and no process is affected.
func TestTE8ServerUpdate(t *testing.T) {
	f := startEnrolled(t, 3)
	key, other := ft.NewReleaseKey(t), ft.NewReleaseKey(t)
	for _, h := range f.hosts[:2] { // the third has no key
		put(t, filepath.Join(h.state, "release.pub"), key.PEM, 0o644)
	}

	daemons := startFleet(t, f.s, 2)
	before := daemons.pids()
	same := func(want ...string) {
		t.Helper()

		if got := f.versions(); !slices.Equal(got, want) {
			t.Errorf("versions %v, want %v", got, want)
		}

		for i, h := range f.hosts {
			select {
			case <-h.agent.Done():
				t.Fatalf("agent %d ended: %s", i+1, h.agent.Output())
			default:
			}
			if h.agent.PID() != h.pid {
				t.Errorf("agent %d has another pid", i+1)
			}
		}

		if now := daemons.pids(); !slices.Equal(now, before) {
			t.Errorf("daemons were %v, are %v", before, now)
		}

		for _, d := range daemons.daemons {
			if d.Count("start") != 1 || d.Copies() != 1 {
				t.Errorf("%s was started %d times", d.Name, d.Count("start"))
			}
		}
	}

	stopped := func(r client.Upgrade, want string) {
		t.Helper()
		if r.State != "stopped" || !strings.Contains(r.Reason, want) {
			t.Errorf("%+v, want stopped for %q", r, want)
		}
	}

	// Publish a release once. Only members can download it.
	f.must("release", "publish", key.ReleaseOf(t, ft.NewVersion, ft.ProgramOf(t, ft.NewVersion), nil))

	if out := f.must("release", "list"); !strings.Contains(out, ft.NewVersion) {
		t.Error(out)
	}
	if out, err := f.try("release", "publish", other.ReleaseOf(t, ft.NewVersion, ft.ProgramOf(t, ft.NewVersion),
		nil)); err == nil || !strings.Contains(out, "another manifest") {
		t.Errorf("%v, %s", err, out)
	}

	res, err := f.s.Client.Get(f.s.Cred.URL + "/api/v1/enrol/releases/" + ft.NewVersion + "/manifest")
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger got %v, %v", res, err)
	}

	_ = res.Body.Close()
	stopped(f.upgrade(ft.NewVersion, "--host", "127.0.0.3"), "refused: no release key on this host")

	// The owner of the server can publish anything.
	f.must("release", "publish", other.ReleaseOf(t, "1.1.5", ft.ProgramOf(t, ft.NewVersion), nil))
	stopped(f.upgrade("1.1.5", "--host", "127.0.0.1"), "refused: the manifest is not signed by the release key")
	same(ft.OldVersion, ft.OldVersion, ft.OldVersion)

	// Upgrade two hosts in stages.
	if r := f.upgrade(ft.NewVersion, "--stages", "50,100", "--host", "127.0.0.1,127.0.0.2"); r.State != "done" ||
		r.Hosts[0].State != "done" || r.Hosts[1].Stage != 100 {
		t.Errorf("%+v", r)
	}

	same(ft.NewVersion, ft.NewVersion, ft.OldVersion)

	// A release that does not start is rolled back and stops the upgrade.
	f.must("release", "publish", key.ReleaseOf(t, ft.BrokenVersion, ft.ProgramOf(t, ft.BrokenVersion), nil))
	put(t, f.hosts[0].config, []byte("update-trial: 2s\n"), 0o600)
	stopped(f.upgrade(ft.BrokenVersion, "--host", "127.0.0.1"),
		"rolled back: the server did not accept its connection within 2s")
	same(ft.NewVersion, ft.NewVersion, ft.OldVersion)

	// The host and the audit have a record of it.
	if b, err := os.ReadFile(filepath.Join(f.hosts[0].state, "acts.log")); err != nil ||
		!strings.Contains(string(b), "update to release") {
		t.Errorf("the act log of the host does not have the update: %v", err)
	}

	if out := f.must("audit", "list"); !strings.Contains(out, "release:roll:1.2.0") ||
		!strings.Contains(out, "release:stopped:1.2.0") {
		t.Error(out)
	}
}
