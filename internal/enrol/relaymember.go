package enrol

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

// RelayMember is what a relay got when it joined. It stores it in a file that only its owner can read.
type RelayMember struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Areas     []int  `json:"areas"`
	Authority string `json:"authority"` // PEM; several while the servers change their authority
	Identity  string `json:"identity"`  // PEM: key and certificate

	pair  *tls.Certificate
	roots *x509.CertPool
}

// Parse decodes the keys and certificates and checks them.
func (m *RelayMember) Parse() error {
	cert, key, err := parsePair([]byte(m.Identity))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(m.Authority)) {
		return errors.New("it has no authority")
	}
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: cert.NotAfter,
	}); err != nil {
		return fmt.Errorf("the certificate is not of the authority: %w", err)
	}
	if id, ok := clientName(cert, relayKind); !ok || id != m.ID {
		return errors.New("the certificate is not that of this relay")
	}

	m.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	m.roots = roots
	return nil
}

// RenewAt is when two thirds of the certificate's life are over, NotAfter when it expires.
func (m *RelayMember) RenewAt() time.Time {
	life := m.pair.Leaf.NotAfter.Sub(m.pair.Leaf.NotBefore.Add(clockSkew))
	return m.pair.Leaf.NotAfter.Add(-life / 3)
}

// NotAfter is when the certificate expires.
func (m *RelayMember) NotAfter() time.Time { return m.pair.Leaf.NotAfter }

// TLS is the configuration of connections to servers.
func (m *RelayMember) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: ServerName, RootCAs: m.roots,
		Certificates: []tls.Certificate{*m.pair}, NextProtos: []string{"h2"}}
}

// NewKey makes a key for the next certificate, and a request for it.
func (m *RelayMember) NewKey() (*ecdsa.PrivateKey, RelayRenewRequest, error) {
	key, csr, err := newKey()
	return key, RelayRenewRequest{CSR: csr, Current: serialText(m.pair.Leaf.SerialNumber)}, err
}

// Apply makes the next state of a member from an answer. m is nil for a relay that joins.
func (m *RelayMember) Apply(a RelayAnswer, key *ecdsa.PrivateKey) (*RelayMember, error) {
	block, _ := pem.Decode([]byte(a.Certificate))
	if block == nil {
		return nil, errors.New("the answer has no certificate")
	}
	pair, err := encodePair(block.Bytes, key)
	if err != nil {
		return nil, err
	}
	next := &RelayMember{ID: a.ID, Name: a.Name, Areas: a.Areas, Authority: a.Authorities, Identity: string(pair)}
	if m != nil && m.ID != next.ID {
		return nil, fmt.Errorf("the answer is for relay %s, not %s", next.ID, m.ID)
	}
	return next, next.Parse()
}

// JoinRelay makes this machine a relay. It sends the token only after the server has proven, by TLS 1.3, that it has a
// certificate of the authority that is pinned in the token. servers are those of the answer.
func JoinRelay(ctx context.Context, server string, t Token) (m *RelayMember, servers []string, err error) {
	base, err := serverURL(server)
	if err != nil {
		return nil, nil, err
	}
	key, csr, err := newKey()
	if err != nil {
		return nil, nil, err
	}

	var authority *x509.Certificate
	var a RelayAnswer
	err = post(ctx, pinned(t.Pin, &authority), base, RelayJoinPath, RelayJoinRequest{Token: t.ID + "." + t.Secret, CSR: csr}, "", &a)
	if err == nil && !bundleHas(a.Authorities, authority) {
		err = errors.New("the answer leaves out the authority that the server has shown")
	}
	if err == nil {
		m, err = (*RelayMember)(nil).Apply(a, key)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot join %s: %w", base.Host, err)
	}
	for _, s := range a.Servers {
		if full := RelayServer(s, base.Host); full != "" {
			servers = append(servers, full)
		}
	}
	if len(servers) == 0 {
		return nil, nil, fmt.Errorf("cannot join %s: it names no server for relays; start it with --relay-listen", base.Host)
	}
	return m, servers, nil
}

// RelayServer completes an address that a server named: without a host it is that of the server itself, which was reached
// at host:port. It returns "" for what is no address.
func RelayServer(address, reached string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return ""
	}
	if host == "" {
		if host, _, err = net.SplitHostPort(reached); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}
