package nats_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
)

const peerName = "peer.test"

// authority makes certificates for a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t), pool: x509.NewCertPool()}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, a.key.Public(), a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certificate is one with a common name, and with a host name if dns is not "".
func (a *authority) certificate(name, dns string) *tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if dns != "" {
		c.DNSNames = []string{dns}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	must(a.t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// fabricTLS is the configuration of a broker for agents.
func (a *authority) fabricTLS() *tls.Config {
	return &tls.Config{ClientCAs: a.pool, Certificates: []tls.Certificate{*a.certificate("server", "server.test")}}
}

// peerTLS is the configuration of the connections between brokers.
func (a *authority) peerTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{*a.certificate("peer", peerName)}, InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return errors.New("no certificate")
			}
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: a.pool, DNSName: peerName,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			return err
		}}
}

// agentTLS is the configuration of an agent.
func (a *authority) agentTLS(cloud int, agent gozzard.AgentID) *tls.Config {
	return &tls.Config{RootCAs: a.pool, ServerName: "server.test", MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{*a.certificate(fmt.Sprintf("%d.%s", cloud, agent), "")}}
}

// gate accepts every agent with a certificate.
type gate struct{}

func (gate) Admit(cs *tls.ConnectionState, _ string) (gozzard.AgentID, int, time.Time, error) {
	cloud, agent, _ := strings.Cut(cs.PeerCertificates[0].Subject.CommonName, ".")
	n, err := strconv.Atoi(cloud)
	return gozzard.AgentID(agent), n, time.Now().Add(time.Hour), err
}

func (gate) Clone(gozzard.AgentID, int) {}

// told is a message of a peer.
type told struct{ from, text string }

// member is one server of a cluster.
type member struct {
	*nats.Broker
	id    string
	hub   *nats.Hub
	stop  func() // ends the hub
	inbox inbox

	mu    sync.Mutex
	heard []told
}

func (a *authority) options(id string) nats.BrokerOptions {
	return nats.BrokerOptions{Listen: "127.0.0.1:0", TLS: a.fabricTLS(), Gate: gate{},
		Cluster: &nats.ClusterOptions{Server: id, Listen: "127.0.0.1:0", TLS: a.peerTLS()}}
}

// member starts a server.
func (a *authority) member(o nats.BrokerOptions) *member {
	a.t.Helper()
	b, err := nats.StartBroker(o)
	must(a.t, err)
	a.t.Cleanup(b.Close)
	m := &member{Broker: b, id: o.Cluster.Server}
	m.openHub(a.t)
	return m
}

func (m *member) openHub(t testing.TB) {
	t.Helper()
	h, err := nats.NewHub(nats.HubOptions{Broker: m.Broker, Receive: m.inbox.receive,
		Limits: nats.Limits{Messages: -1, Bytes: -1},
		Peer: func(from string, payload []byte) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.heard = append(m.heard, told{from, string(payload)})
		}})
	must(t, err)
	m.hub, m.stop = h, run(t, h.Run)
}

func (m *member) messages() []told {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.heard)
}

// cluster starts servers s0, s1 and so on and waits until all are connected.
func (a *authority) cluster(n int) []*member {
	a.t.Helper()
	var all []*member
	for i := range n {
		all = append(all, a.member(a.options(fmt.Sprintf("s%d", i))))
	}
	introduce(a.t, all...)
	return all
}

// introduce gives all servers the addresses of all, and waits until each is connected to all others.
func introduce(t testing.TB, all ...*member) {
	t.Helper()
	var addresses []string
	for _, m := range all {
		addresses = append(addresses, m.ClusterAddr())
	}
	for _, m := range all {
		must(t, m.SetRoutes(addresses))
	}
	eventually(t, "the cluster", func() bool { return connected(all...) })
}

func connected(all ...*member) bool {
	for _, m := range all {
		if len(m.Peers()) != len(all)-1 {
			return false
		}
	}
	return true
}

// agent connects an agent to a server.
func (a *authority) agent(m *member, agent gozzard.AgentID) *end {
	a.t.Helper()
	return link(a.t, nats.LinkOptions{URL: m.Addr(), Agent: agent, TLS: a.agentTLS(0, agent), Machine: "machine"})
}
