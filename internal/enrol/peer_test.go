package enrol_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
)

// peer starts a broker of a cluster with the registry and the authority of the rig.
func (r *rig) peer(id string) *nats.Broker {
	r.t.Helper()
	b, err := nats.StartBroker(nats.BrokerOptions{Listen: "127.0.0.1:0", TLS: r.authority.FabricTLS(), Gate: r.registry,
		Cluster: &nats.ClusterOptions{Server: id, Listen: "127.0.0.1:0", TLS: r.authority.PeerTLS(id)}})
	must(r.t, err)
	r.t.Cleanup(b.Close)
	return b
}

// TestTS1OnlyServersArePeers: at the cluster port only the certificate counts that servers make for each other, and it
// counts nowhere else.
func TestTS1OnlyServersArePeers(t *testing.T) {
	r, other := newRig(t), newRig(t)
	a, b := r.peer("a"), r.peer("b")
	must(t, b.SetRoutes([]string{a.ClusterAddr()}))
	eventually(t, "the cluster", func() bool { return slices.Equal(a.Peers(), []string{"b"}) })

	// The certificate of an agent is good at the ports for agents of both brokers.
	m := r.member("a1", 1)
	agent := enrol.NewRenewer(m, "machine", nil).TLS()
	m.Address = a.Addr()
	e := r.link(m, "machine")
	eventually(t, "the agent at the first", e.isUp)
	m.Address = b.Addr()
	e = r.link(m, "machine")
	eventually(t, "the agent at the second", e.isUp)

	// It is not good at the port of the cluster, nor is any other.
	greedy := r.greedyCertificate("greedy", 2)
	for what, get := range map[string]func(*tls.CertificateRequestInfo) (*tls.Certificate, error){
		"an agent": agent.GetClientCertificate,
		"an agent that asked for more": func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return greedy, nil
		},
		"the server of agents": func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return r.authority.ServerCertificate([]string{enrol.PeerName})
		},
		"another installation": other.authority.PeerTLS("a").GetClientCertificate,
		"no certificate":       nil,
	} {
		if err := sayHello(t, a.ClusterAddr(), get); err == nil {
			t.Errorf("%s was accepted at the port of the cluster", what)
		}
	}
	must(t, sayHello(t, a.ClusterAddr(), r.authority.PeerTLS("c").GetClientCertificate))

	// And that of a server is not good for agents, in either role.
	asAgent := agent.Clone()
	asAgent.GetClientCertificate = r.authority.PeerTLS("a").GetClientCertificate
	if _, err := r.attack(asAgent, natsgo.Name("machine/1")); err == nil {
		t.Error("a server was taken for an agent")
	}
	if c, err := tls.Dial("tcp", a.ClusterAddr(), agent); err == nil {
		_ = c.Close()
		t.Error("an agent took the port of the cluster for its own")
	}
}

// sayHello connects to the cluster port and reads the first line of the broker.
func sayHello(t *testing.T, addr string, get func(*tls.CertificateRequestInfo) (*tls.Certificate, error)) error {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: get})
	if err != nil {
		return err
	}
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = bufio.NewReader(c).ReadString('\n')
	return err
}

// greedyCertificate is that of a host that asks for the names of a server.
func (r *rig) greedyCertificate(agent gozzard.AgentID, n byte) *tls.Certificate {
	r.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(r.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		DNSNames: []string{enrol.PeerName, enrol.ServerName}, URIs: []*url.URL{{Scheme: "gozzard", Opaque: "server:a"}},
	}, key)
	must(r.t, err)

	token := r.token(enrol.TokenRequest{})
	answer, err := r.registry.Join(r.t.Context(), netip.MustParseAddr("127.0.0.1"), enrol.JoinRequest{
		Token: token.ID + "." + token.Secret, Agent: agent, IPs: []netip.Addr{ip(n)}, Machine: "machine",
		CSR: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	must(r.t, err)
	block, _ := pem.Decode([]byte(answer.Certificate))
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}

// TestPeersWhileTheAuthorityIsRotated: servers find each other at every step of a rotation.
func TestPeersWhileTheAuthorityIsRotated(t *testing.T) {
	r := newRig(t)
	a := r.peer("a")
	for _, step := range []func() error{func() error { return nil }, r.authority.Rotate, r.authority.Finish} {
		must(t, step())
		b := r.peer("b")
		must(t, a.SetRoutes([]string{b.ClusterAddr()}))
		eventually(t, "the peer", func() bool { return len(a.Peers()) == 1 && len(b.Peers()) == 1 })
		b.Close()
		eventually(t, "the end", func() bool { return len(a.Peers()) == 0 })
	}

	// After most of the life of its certificate a server makes a new one.
	r.clock.forward(80 * 24 * time.Hour)
	b := r.peer("c")
	must(t, a.SetRoutes([]string{b.ClusterAddr()}))
	eventually(t, "the peer after the renewal", func() bool { return len(a.Peers()) == 1 })
}
