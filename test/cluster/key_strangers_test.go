//go:build linux

package cluster_test

import (
	"bufio"
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// TestTS19OnlyServersGetKeys: those that are no server of the installation neither get the signing key nor make a server
// take one: an enrolled host, a relay, a server of another installation and a stranger.
func TestTS19OnlyServersGetKeys(t *testing.T) {
	t.Parallel() // it mostly waits
	i := newRelayed(t, 2)
	a, b := i.servers[0], i.servers[1]
	before := i.sameKey()

	// What an attacker has: the certificate of a host, the one of a relay, and the keys of an installation of its own.
	folder := filepath.Join(t.TempDir(), "host")
	a.cliLocal("agent", "join", "--server", a.Cred.URL, "--token-file", a.token("token", "create"), "--data", folder, "--ip", "10.9.0.1")
	host := i.identityOf(folder)
	r := &relay{i: i, data: filepath.Join(t.TempDir(), "relay")}
	r.join(a, "plant", relayArea)
	relayed := identity(t, r.state().Member.Identity)
	messages := i.forged(b.id())

	// At the port of agents a host may speak, but not as a server. All others may not speak at all.
	said := []string{"SUB sv.> 1", "SUB sv." + a.id() + ".* 2"}
	for _, m := range messages {
		for _, to := range []string{"all", a.id()} {
			said = append(said, fmt.Sprintf("PUB sv.%s.%s %d", to, b.id(), len(m)), m)
		}
	}
	told := speaks(t, dialTo(t, a.agent), as(host), said...)
	if n := strings.Count(told, "Permissions Violation"); n != 2+2*len(messages) || !strings.Contains(told, "PONG") ||
		strings.Contains(told, "MSG ") {
		t.Errorf("a host speaks as a server: %d of its %d lines are rejected: %s", n, 2+2*len(messages), told)
	}
	for name, conf := range map[string]*tls.Config{"a relay": as(relayed), "a stranger": as()} {
		if told := speaks(t, dialTo(t, a.agent), conf, said...); strings.Contains(told, "PONG") {
			t.Errorf("%s speaks at the port of agents: %s", name, told)
		}
	}

	i.onlyServers(a, map[string]*tls.Config{"a host": as(host), "a relay": as(relayed), "a stranger": as(),
		"a server of another installation": peerOf(t, t.TempDir())})

	// Nobody got a key, and none was taken.
	const given = "another server gets the signing key"
	if !bytes.Equal(i.sameKey(), before) {
		t.Error("the signing key was changed")
	}
	for _, m := range i.servers {
		if strings.Contains(m.Output(), given) || len(m.nextKeys()) > 0 {
			t.Errorf("%s gave a key, or has %v: %s", m.listen, m.nextKeys(), m.Output())
		}
	}

	// A server does, so the checks above can fail.
	a.cli("key", "rotate", "signing")
	if bytes.Equal(i.sameKey(), before) || !strings.Contains(a.Output(), given) {
		t.Errorf("a rotation gave no key: %s", a.Output())
	}
	fmt.Println("attack TS19: a host, a relay, a stranger and a server of another installation get no key, and make no server take one: 0 accepted")
}

// forged are messages about keys as another server would send them: a request for the present key, the offer of a foreign
// one, that key, and the claim that it is stored.
func (i *installation) forged(from string) (list []string) {
	i.t.Helper()
	have, err := signing.Keys(i.servers[0].data)
	if err != nil {
		i.t.Fatal(err)
	}
	mine, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	own, err := signing.OpenSigner(i.t.TempDir(), nil)
	if err != nil {
		i.t.Fatal(err)
	}
	file, key, err := own.Next()
	if err != nil {
		i.t.Fatal(err)
	}
	public, sealed, err := enrol.SealForPeer(key.String(), mine.PublicKey().Bytes(), file)
	if err != nil {
		i.t.Fatal(err)
	}

	for _, m := range []gozzard.PeerKey{
		{What: gozzard.PeerKeyAsk, Key: have[len(have)-1].Key.String(), Public: mine.PublicKey().Bytes()},
		{What: gozzard.PeerKeyOffer, Key: key.String()},
		{What: gozzard.PeerKeyGive, Key: key.String(), Public: public, Sealed: sealed},
		{What: gozzard.PeerKeyKept, Key: key.String()},
	} {
		b, err := nats.EncodeNews(&gozzard.PeerNews{From: from, Key: &m})
		if err != nil {
			i.t.Fatal(err)
		}
		list = append(list, string(b))
	}
	return list
}

// onlyServers: at the port for servers, only a certificate by the authority of the installation for a server is greeted.
func (i *installation) onlyServers(m *member, others map[string]*tls.Config) {
	i.t.Helper()
	port := m.Flag("--cluster-listen")
	for name, conf := range others {
		if got := greeted(i.t, port, conf); strings.HasPrefix(got, "INFO") {
			i.t.Errorf("%s is greeted at the port for servers: %s", name, got)
		}
	}

	folder := i.t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, enrol.KeyFile), []byte(m.read(enrol.KeyFile)), 0o600); err != nil {
		i.t.Fatal(err)
	}
	if got := greeted(i.t, port, peerOf(i.t, folder)); !strings.HasPrefix(got, "INFO") {
		i.t.Errorf("a server of the installation is not greeted, so this proves nothing: %s", got)
	}
}

// peerOf is a client with the certificate of a server of the authority in a folder, or of a new one.
func peerOf(t *testing.T, folder string) *tls.Config {
	t.Helper()
	authority, err := enrol.OpenAuthority(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := as()
	conf.GetClientCertificate = authority.PeerTLS("stranger").GetClientCertificate
	return conf
}

// greeted is the first line that the owner of a certificate is told, or why there is none.
func greeted(t *testing.T, address string, conf *tls.Config) string {
	t.Helper()
	c := dialTo(t, address)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(tls.Client(c, conf)).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return line
}
