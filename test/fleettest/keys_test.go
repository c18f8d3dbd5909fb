//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/client"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// keyFleet is a server with real agents that is driven by the commands of the program.
type keyFleet struct {
	t      *testing.T
	server *ft.Program
	data   string
	url    string
	cred   string
	daemon *ft.Daemon
	env    []string
	args   []string // of the server
	agents []*ft.Program
	states []string // folders of the agents
}

// startKeyFleet starts a server for enrolled hosts.
func startKeyFleet(t *testing.T, env []string, extra ...string) *keyFleet {
	t.Helper()
	data := filepath.Join(t.TempDir(), "server")
	f := &keyFleet{t: t, data: data, cred: filepath.Join(data, "credentials.json")}
	local := func() string { return "127.0.0.1:" + strconv.Itoa(ft.FreePort(t)) }
	listen := local()
	f.url = "https://" + listen
	f.args = append([]string{"server", "--data", data, "--listen", listen, "--agent-listen", local(), "--enrol",
		"--rate-app=0", "--max-failed-logins=0"}, extra...)
	f.env = env
	f.server = ft.Start(t, "server", env, f.args...)
	f.ready()
	f.daemon = ft.NewDaemon(t, t.TempDir(), "keyd")
	return f
}

// ready waits until the server answers.
func (f *keyFleet) ready() {
	f.t.Helper()
	ft.Until(f.t, time.Minute, f.server.Output, func() bool {
		select {
		case <-f.server.Done():
			f.t.Fatalf("the server ended: %s", f.server.Output())
		default:
		}
		_, err := f.try("hosts")
		return err == nil
	})
}

// again starts the server again.
func (f *keyFleet) again() {
	f.t.Helper()
	f.server.Kill(syscall.SIGTERM)
	f.server.Again()
	f.ready()
}

// againWith starts the server again with further flags.
func (f *keyFleet) againWith(extra ...string) {
	f.t.Helper()
	f.server.Kill(syscall.SIGTERM)
	f.args = append(f.args, extra...)
	f.server = ft.Start(f.t, "server", f.env, f.args...)
	f.ready()
}

// try runs a command with the credentials of the server.
func (f *keyFleet) try(args ...string) (string, error) { return f.tryAs(f.cred, args...) }

// tryAs runs a command with a file of credentials.
func (f *keyFleet) tryAs(cred string, args ...string) (string, error) {
	cmd := exec.Command(ft.Binary(f.t), args...)
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+cred)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		out = append(out, stderr.Bytes()...)
	}
	return string(out), err
}

func (f *keyFleet) must(args ...string) string {
	f.t.Helper()
	out, err := f.try(args...)
	if err != nil {
		f.t.Fatalf("gozzard %q: %v\n%s\nserver: %s", args, err, out, f.server.Output())
	}
	return out
}

// refused runs a command that must fail with a text.
func (f *keyFleet) refused(text string, args ...string) {
	f.t.Helper()
	if out, err := f.try(args...); err == nil || !strings.Contains(out, text) {
		f.t.Fatalf("gozzard %q: %v, want a refusal with %q\n%s", args, err, text, out)
	}
}

// join enrols host 127.0.0.n and starts its agent.
func (f *keyFleet) join(n int) *ft.Program {
	t := f.t
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ft.AllowEverything(t, dir)
	token := filepath.Join(t.TempDir(), "token")
	put(t, token, []byte(f.must("token", "create")), 0o600)
	f.must("agent", "join", "--server", f.url, "--token-file", token, "--data", dir, "--ip", "127.0.0."+strconv.Itoa(n))
	p := ft.Start(t, "agent"+strconv.Itoa(n), nil, "agent", "--data", dir)
	f.agents, f.states = append(f.agents, p), append(f.states, dir)
	f.online(n, true)
	return p
}

// online waits until host 127.0.0.n is online or offline.
func (f *keyFleet) online(n int, want bool) {
	f.t.Helper()
	ip := "127.0.0." + strconv.Itoa(n)
	ft.Until(f.t, time.Minute, func() string { return ip + ": " + f.must("hosts", "-o", "json") }, func() bool {
		var page struct{ Hosts []client.HostInfo }
		if err := json.Unmarshal([]byte(f.must("hosts", "-o", "json")), &page); err != nil {
			f.t.Fatal(err)
		}
		for _, h := range page.Hosts {
			if strings.Contains(fmt.Sprint(h.Addrs), ip) {
				return h.Online == want
			}
		}
		return !want
	})
}

// register registers the daemon on hosts.
func (f *keyFleet) register(hosts ...int) {
	f.t.Helper()
	f.must("register", "-f", f.define(hosts...))
}

// define writes the definition of the daemon on hosts to a file.
func (f *keyFleet) define(hosts ...int) string {
	f.t.Helper()
	doc := ft.J{"namespace": "keys", "name": f.daemon.Name, "spec": f.daemon.Spec(nil)}
	var list []ft.J
	for _, n := range hosts {
		list = append(list, ft.J{"cloud": 0, "ip": "127.0.0." + strconv.Itoa(n)})
	}
	doc["hosts"] = list
	b, err := json.Marshal(doc)
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.t.TempDir(), "doc.json")
	put(f.t, path, b, 0o600)
	return path
}

// obeys lets a host run a command, and checks that it ran.
func (f *keyFleet) obeys(n int) {
	f.t.Helper()
	before := f.daemon.Count("reload")
	f.must("reload", f.daemon.Name, "-n", "keys", "--host", "127.0.0."+strconv.Itoa(n))
	if got := f.daemon.Count("reload"); got != before+1 {
		f.t.Fatalf("host %d ran the command %d times", n, got-before)
	}
}

// keys asks the server for its keys.
func (f *keyFleet) keys() (k client.Keys) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.must("key", "status", "-o", "json")), &k); err != nil {
		f.t.Fatal(err)
	}
	return k
}

// trusted is the signing key that an agent trusts.
func trusted(t *testing.T, agent *ft.Program) string {
	t.Helper()
	return strings.TrimSpace(string(read(t, filepath.Join(agent.Flag("--data"), "server.key"))))
}

// TestTT10SigningKeyWhileTheServerRuns: the signing key is rotated without a restart. Hosts accept the new key within
// their session, a host that was away follows several rotations, and no host obeys the old key any more.
func TestTT10SigningKeyWhileTheServerRuns(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startKeyFleet(t, nil)
	near, away := f.join(1), f.join(2)
	f.register(1, 2)
	f.must("start", f.daemon.Name, "-n", "keys", "--host", "127.0.0.1")
	f.obeys(1)
	old := read(t, filepath.Join(f.data, "signing.key"))
	sessions := near.Sessions()

	// Rotate twice, one host is away.
	away.Kill(syscall.SIGTERM)
	for epoch := uint64(2); epoch <= 3; epoch++ {
		out := f.must("key", "rotate", "signing")
		if !strings.Contains(out, fmt.Sprintf("epoch %d replaces", epoch)) {
			t.Fatalf("rotated: %s", out)
		}
		f.obeys(1)
		if k := f.keys(); len(k.Signing) != int(epoch) || trusted(t, near) != k.Signing[epoch-1].Key {
			t.Fatalf("the host trusts %s, the keys are %+v", trusted(t, near), k.Signing)
		}
	}
	if n := near.Sessions(); n != sessions {
		t.Errorf("the host opened %d new sessions", n-sessions)
	}

	// The other host comes back, and a new one joins.
	away.Again()
	f.online(2, true)
	f.obeys(2)
	third := f.join(3)
	newest := f.keys().Signing[2].Key
	for _, p := range []*ft.Program{away, third} {
		if got := trusted(t, p); got != newest {
			t.Errorf("a host trusts %s, want %s", got, newest)
		}
	}

	// A server with the old key is refused.
	f.server.Kill(syscall.SIGTERM)
	replace(t, filepath.Join(f.data, "signing.key"), old)
	f.server.Again()
	f.ready()
	ft.Until(t, time.Minute, func() string { return "no refusal: " + near.Output() }, func() bool {
		return strings.Contains(near.Output(), "command of epoch 1, this host obeys epoch 3")
	})

	if out := f.must("audit", "list"); strings.Count(out, "key:signing:rotate:") != 2 {
		t.Errorf("the audit does not have both rotations: %s", out)
	}
}

// TestTT11AuthorityWhileHostsMove: two authorities are valid side by side, hosts move by themselves, and the end of the
// rotation refuses to cut hosts off, also with a wrong number.
func TestTT11AuthorityWhileHostsMove(t *testing.T) {
	t.Parallel() // it mostly waits
	f := startKeyFleet(t, nil, "--certificate-life", "6s")
	f.join(1)
	away := f.join(2)
	f.register(1, 2)
	f.must("start", f.daemon.Name, "-n", "keys", "--host", "127.0.0.1")
	first := f.keys().Authority.Authority
	away.Kill(syscall.SIGTERM)
	f.refused("is not being rotated", "key", "rotate", "authority", "--finish")

	// moved waits until so many hosts have moved.
	moved := func(n int) {
		t.Helper()
		ft.Until(t, time.Minute, func() string { return f.must("key", "status", "-o", "json") },
			func() bool { return f.keys().Authority.Moved == n })
	}

	// One host moves, the other one is away. The end is refused.
	f.must("key", "rotate", "authority")
	f.refused("is being rotated already", "key", "rotate", "authority")
	moved(1)
	a := f.keys().Authority
	if a.Authority != first || a.Next == "" || len(a.Waiting)+len(a.Offline) != 1 {
		t.Fatalf("the rotation is %+v", a)
	}
	f.refused("1 hosts have not moved", "key", "rotate", "authority", "--finish")
	f.refused("1 hosts have not moved to the next authority, not 2", "key", "rotate", "authority", "--finish",
		"--confirm", "2")
	f.obeys(1)

	// A server that starts again still knows both. The other host comes back and moves, too.
	f.again()
	if f.keys().Authority.Moved != 1 {
		t.Fatalf("the server forgot which host moved: %s", f.must("key", "status"))
	}
	away.Again()
	moved(2)
	if out := f.must("key", "rotate", "authority", "--finish"); !strings.Contains(out, "2 host(s) moved, 0 cut off") {
		t.Fatalf("finished: %s", out)
	}
	if got := f.keys().Authority; got.Authority != a.Next || got.Next != "" {
		t.Fatalf("the authority is %+v, want %s", got, a.Next)
	}

	// The hosts come back to a server that has the new authority only, also after a renewal.
	f.again()
	for n := 1; n <= 2; n++ {
		f.online(n, true)
		f.obeys(n)
	}

	// A host that stays away is cut off when the admin says so, and no other.
	away.Kill(syscall.SIGTERM)
	f.must("key", "rotate", "authority")
	moved(1)
	if out := f.must("key", "rotate", "authority", "--finish", "--confirm", "1"); !strings.Contains(out, "1 cut off") {
		t.Fatalf("finished: %s", out)
	}
	away.Again()
	ft.Until(t, time.Minute, func() string { return "the host was not rejected: " + away.Output() }, func() bool {
		return strings.Contains(away.Output(), "unknown authority")
	})
	f.obeys(1)
	if out := f.must("audit", "list"); strings.Count(out, "key:authority:finish:") != 2 {
		t.Errorf("the audit does not have the rotations: %s", out)
	}
}
