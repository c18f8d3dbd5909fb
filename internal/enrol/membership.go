package enrol

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

const membershipFile = "enrolment.json"

// Membership is the result of an enrolment. A host stores it in a file of the agent's state folder that only its owner
// can read.
type Membership struct {
	Server    string          `json:"server"`  // URL of the API
	Address   string          `json:"address"` // of the fabric
	Agent     gozzard.AgentID `json:"agent"`
	Cloud     int             `json:"cloud"`
	IPs       []netip.Addr    `json:"ips"`       // as the server has them
	Authority string          `json:"authority"` // PEM; several while the server changes its authority
	Identity  string          `json:"identity"`  // PEM: key and certificate

	// Servers are all servers that this host may use, as the server named them with the certificate. Later lists come with
	// signed commands.
	Servers []gozzard.ServerAddress `json:"servers,omitempty"`

	state State // the server's answer when the host joined
	path  string
	pair  *tls.Certificate
	roots *x509.CertPool
}

// State is the state of the member as the server answered when the host joined. It is empty for a loaded membership.
func (m *Membership) State() State { return m.state }

// LoadMembership reads the membership of a state folder. It returns fs.ErrNotExist if the host is not enrolled.
func LoadMembership(dir string) (*Membership, error) {
	path := filepath.Join(dir, membershipFile)
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the enrolment: %w", err)
	}

	m := &Membership{path: path}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("cannot read the enrolment in %s: %w", path, err)
	}
	if err := m.parse(); err != nil {
		return nil, fmt.Errorf("cannot use the enrolment in %s: %w", path, err)
	}

	return m, nil
}

// parse decodes the keys and certificates and checks them.
func (m *Membership) parse() error {
	if err := m.Agent.Validate(); err != nil {
		return err
	}

	cert, key, err := parsePair([]byte(m.Identity))
	if err != nil {
		return err
	}

	// The certificate must be of the authority. It may have expired: then it is renewed.
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM([]byte(m.Authority)) {
		return errors.New("it has no authority")
	}

	_, err = cert.Verify(x509.VerifyOptions{
		Roots: m.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: cert.NotAfter,
	})
	if err != nil {
		return fmt.Errorf("the certificate is not of the authority: %w", err)
	}

	m.pair = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	return nil
}

func (m *Membership) save() error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", m.path, err)
	}
	return atomicfile.Write(m.path, append(b, '\n'))
}

// NotAfter is when the certificate expires.
func (m *Membership) NotAfter() time.Time { return m.pair.Leaf.NotAfter }

// life is how long the certificate is valid.
func (m *Membership) life() time.Duration {
	return m.pair.Leaf.NotAfter.Sub(m.pair.Leaf.NotBefore.Add(clockSkew))
}

// renewAt is when two thirds of the certificate's life are over.
func (m *Membership) renewAt() time.Time {
	return m.pair.Leaf.NotAfter.Add(-m.life() / 3)
}
