//go:build linux

package cluster_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// relayedHost is a host behind the relay.
const relayedHost = "10.8.0.1"

// TestTS21AuthorityOverAllServers: the authority is rotated at one server and the rotation is ended at another one. No server is
// restarted. Hosts, a relay and the connections between servers move over, and a server that is off at either step follows when it
// starts. The keys are in no file of the database.
func TestTS21AuthorityOverAllServers(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 2, "--certificate-life=15s")
	f := &loaded{installation: i}
	a, b := i.servers[0], i.servers[1]
	a.join(faultHost(1))
	r := a.relay("plant", relayArea)
	r.host(a, relayedHost)
	secrets := i.authoritySecrets(enrol.KeyFile)

	// Rotate at one, and end it at the other one.
	if out := a.cli("key", "rotate", "authority"); strings.Contains(out, "server(s)") {
		t.Errorf("a server that runs is said to be without the next authority: %s", out)
	}
	i.sameFile(enrol.NextKeyFile)
	secrets = append(secrets, i.authoritySecrets(enrol.NextKeyFile)...)
	if out, err := b.try("key", "rotate", "authority"); err == nil || !strings.Contains(out, "is being rotated already") {
		t.Errorf("a second rotation at another server: %v: %s", err, out)
	}
	b.moved(2)
	first := a.read(enrol.KeyFile)
	ft.Until(t, time.Minute, r.Output, func() bool { return strings.Count(r.state().Member.Authority, "BEGIN") == 2 })
	i.ends(b, first)

	// All connections are made anew: those of hosts, of the relay, and between servers.
	b.Kill(syscall.SIGTERM)
	b.Again()
	b.answers()
	a.Kill(syscall.SIGTERM)
	a.Again()
	a.answers()
	i.allServe(f)

	// A server is off while the next rotation begins.
	b.stays(a)
	if out := a.cli("key", "rotate", "authority"); !strings.Contains(out, "1 server(s) get it when they run: "+b.id()) {
		t.Errorf("rotate beside a server that is off: %s", out)
	}
	if out, err := a.try("key", "rotate", "authority", "--finish"); err == nil || !strings.Contains(out, "1 servers that do not run") ||
		!strings.Contains(out, b.id()) {
		t.Errorf("the end of a rotation beside a server without the key: %v: %s", err, out)
	}
	b.Again()
	b.answers()
	i.sameFile(enrol.NextKeyFile)
	a.moved(2)

	// It is off while the rotation ends.
	b.stays(a)
	first = a.read(enrol.KeyFile)
	i.endsAt(a, first)
	b.Again()
	i.newCredentials()
	b.answers()
	i.sameFile(enrol.KeyFile)
	i.allServe(f)
	f.notInDatabase("key:authority:finish:", append(secrets, i.authoritySecrets(enrol.KeyFile)...))
}

// TestTS21StolenAuthority: a server without the next authority that is frozen is not forgotten. The owner of a stolen key of the
// authority is greeted as a server until the rotation ends, but gets no key. A server that missed all of it ends, and says what to do.
func TestTS21StolenAuthority(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newInstallation(t, 2)
	a, b := i.servers[0], i.servers[1]
	stolen := t.TempDir()
	if err := os.WriteFile(filepath.Join(stolen, enrol.KeyFile), []byte(a.read(enrol.KeyFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	frozen := b.id()
	ft.Until(t, time.Minute, a.Output, func() bool { return strings.Contains(a.cli("servers", "-o", "json"), frozen) })

	// One that runs and does not store it keeps the authority from being rotated, until it counts as stopped.
	b.Kill(syscall.SIGSTOP)
	t.Cleanup(func() { b.Kill(syscall.SIGCONT) }) // or it cannot be ended
	if out, err := a.try("key", "rotate", "authority"); err == nil || !strings.Contains(out, "server "+frozen+" did not store the next one") {
		t.Errorf("rotate beside a frozen server: %v: %s", err, out)
	}
	ft.Until(t, time.Minute, func() string { return a.cli("servers") }, func() bool { return a.server(b).Silent > 10 })
	a.cli("key", "rotate", "authority")

	for _, name := range []string{"ghost", frozen} {
		i.ghost(a, name, stolen)
	}
	first := a.read(enrol.KeyFile)
	if out := a.cli("key", "rotate", "authority", "--finish", "--confirm", "1"); !strings.Contains(out, "is the only one") || a.read(enrol.KeyFile) == first {
		t.Errorf("finish: %s", out)
	}
	if got := greeted(t, a.Flag("--cluster-listen"), peerOf(t, stolen)); strings.HasPrefix(got, "INFO") {
		t.Errorf("a server with the old authority is greeted: %s", got)
	}

	// The frozen one goes on.
	b.Kill(syscall.SIGCONT)
	select {
	case <-b.Done():
	case <-time.After(3 * time.Minute):
		t.Fatalf("a server with an old authority goes on: %s", b.Output())
	}
	if b.ExitCode() == 0 || !strings.Contains(b.Output(), "does not have the key of the present authority, and did not get it within") {
		t.Errorf("exit code %d: %s", b.ExitCode(), b.Output())
	}
	if err := os.WriteFile(filepath.Join(b.data, enrol.KeyFile), []byte(a.read(enrol.KeyFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Again()
	i.newCredentials()
	b.answers()
	fmt.Println("attack TS21: the owner of a stolen authority asks for keys under two names: 0 given")
}

// ghost is a server that has the key of the authority, but is not in the record as one that runs. It asks for keys.
func (i *installation) ghost(m *member, name, folder string) {
	i.t.Helper()
	authority, err := enrol.OpenAuthority(folder, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	broker, err := nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", TLS: authority.FabricTLS(), Gate: noAgents{},
		Log: slog.New(slog.DiscardHandler), Cluster: &nats.ClusterOptions{Server: name, Listen: "127.0.0.1:0", TLS: authority.PeerTLS(name)}})
	if err != nil {
		i.t.Fatal(err)
	}
	defer broker.Close()
	var mu sync.Mutex
	var told []string
	hub, err := nats.NewHub(nats.HubOptions{Broker: broker, Receive: func(gozzard.AgentID, int, *gozzard.Report) {}, Log: slog.New(slog.DiscardHandler),
		Peer: func(_ string, payload []byte) {
			if n, err := nats.DecodeNews(payload); err == nil && n.Key != nil {
				mu.Lock()
				told = append(told, n.Key.What)
				mu.Unlock()
			}
		}})
	if err != nil {
		i.t.Fatal(err)
	}
	defer hub.Close()
	if err := broker.SetRoutes([]string{m.Flag("--cluster-listen")}); err != nil {
		i.t.Fatal(err)
	}
	ft.Until(i.t, time.Minute, func() string { return fmt.Sprint("the ghost reaches ", broker.Peers()) },
		func() bool { return slices.Contains(broker.Peers(), m.id()) })

	// It asks until it is heard.
	mine, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	for _, key := range []struct{ text, refusal string }{
		{"authority:" + m.keys().Authority.Next, "cannot give the authority to another server"},
		{m.keys().Signing[0].Key, "cannot give the signing key to another server"},
	} {
		before := strings.Count(m.Output(), key.refusal)
		ft.Until(i.t, time.Minute, m.Output, func() bool {
			b, err := nats.EncodeNews(&gozzard.PeerNews{From: name, Key: &gozzard.PeerKey{What: gozzard.PeerKeyAsk, Key: key.text,
				Public: mine.PublicKey().Bytes()}})
			if err == nil {
				err = hub.Tell(m.id(), b)
			}
			if err != nil {
				i.t.Fatal(err)
			}
			return strings.Count(m.Output(), key.refusal) > before
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(told, gozzard.PeerKeyGive) || strings.Contains(m.Output(), "another server gets the") {
		i.t.Errorf("the owner of a stolen authority, as %s, got a key: %q", name, told)
	}
}

// noAgents is the gate of a broker without agents.
type noAgents struct{}

func (noAgents) Admit(*tls.ConnectionState, string) (gozzard.AgentID, int, time.Time, error) {
	return "", 0, time.Time{}, errors.New("no agent may connect")
}

func (noAgents) Clone(gozzard.AgentID, int) {}

// keys are the keys as a server shows them.
func (m *member) keys() (k client.Keys) {
	m.i.t.Helper()
	if err := json.Unmarshal([]byte(m.cli("key", "status", "-o", "json")), &k); err != nil || k.Authority == nil {
		m.i.t.Fatalf("the keys: %v", err)
	}
	return k
}

// moved waits until a server knows that so many hosts have moved, and that all servers have the next authority.
func (m *member) moved(hosts int) {
	m.i.t.Helper()
	ft.Until(m.i.t, 2*time.Minute, func() string { return m.cli("key", "status") }, func() bool {
		a := m.keys().Authority
		return a.Moved == hosts && len(a.Waiting)+len(a.Offline)+len(a.Servers) == 0
	})
}

// stays ends a server and waits until another one takes it for stopped.
func (m *member) stays(other *member) {
	m.i.t.Helper()
	m.Kill(syscall.SIGTERM)
	ft.Until(m.i.t, time.Minute, func() string { return other.cli("servers") }, func() bool { return other.server(m).Silent > 10 })
}

// endsAt ends a rotation at a server, which cuts nothing off.
func (i *installation) endsAt(m *member, before string) {
	i.t.Helper()
	if out := m.cli("key", "rotate", "authority", "--finish"); !strings.Contains(out, "2 host(s) moved, 0 cut off") {
		i.t.Errorf("finish: %s", out)
	}
	ft.Until(i.t, time.Minute, m.Output, func() bool { return m.read(enrol.KeyFile) != before })
}

// ends is endsAt, and waits until all servers have ended it.
func (i *installation) ends(m *member, before string) {
	i.t.Helper()
	i.endsAt(m, before)
	i.sameFile(enrol.KeyFile)
	for _, v := range i.servers {
		if list, err := filepath.Glob(filepath.Join(v.data, "ca-next*")); err != nil || len(list) > 0 {
			i.t.Errorf("%s has %v after the rotation: %v", v.listen, list, err)
		}
	}
	i.newCredentials()
}

// sameFile waits until all servers have the same file.
func (i *installation) sameFile(name string) {
	i.t.Helper()
	text := func(m *member) string {
		b, _ := os.ReadFile(filepath.Join(m.data, name)) // "" while it is not there
		return string(b)
	}
	ft.Until(i.t, time.Minute, func() string { return "the servers have different files " + name }, func() bool {
		first := text(i.servers[0])
		return first != "" && !slices.ContainsFunc(i.servers[1:], func(m *member) bool { return text(m) != first })
	})
}

// newCredentials gives the present authorities to the callers of all servers.
func (i *installation) newCredentials() {
	i.t.Helper()
	b, err := os.ReadFile(i.servers[0].credentials)
	if err != nil {
		i.t.Fatal(err)
	}
	for n, m := range i.servers {
		if n > 0 {
			m.credentials = i.file(strings.ReplaceAll(string(b), i.servers[0].listen, m.listen))
		}
		m.readCredentials()
	}
}

// allServe operates the direct host through each server, and sees the one behind the relay there.
func (i *installation) allServe(f *loaded) {
	i.t.Helper()
	for _, m := range i.servers {
		m.online(relayedHost, true)
	}
	i.cloud = 0
	f.eachServes()
	i.cloud = relayArea
}

// authoritySecrets are the secret parts of an authority of the first server, as a database could have them.
func (i *installation) authoritySecrets(name string) [][]byte {
	i.t.Helper()
	block, _ := pem.Decode([]byte(i.servers[0].read(name)))
	if block == nil {
		i.t.Fatalf("%s has no key", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		i.t.Fatal(err)
	}
	private, err := key.(interface {
		ECDH() (*ecdh.PrivateKey, error)
	}).ECDH()
	if err != nil {
		i.t.Fatal(err)
	}
	return [][]byte{private.Bytes(), block.Bytes[:48], block.Bytes[48:96]} // the last two are lines of the file
}
