package enrol

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/signing"
)

const (
	// ServerName is the host name that agents expect in the certificate of the server. It does not depend on the
	// address of the server, and no certificate of an agent has it.
	ServerName = "server.gozzard.internal"

	// CertLife is how long the certificate of an agent is valid, unless the server is set otherwise.
	CertLife = 24 * time.Hour

	authorityLife = 20 * 365 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	clockSkew     = time.Hour // the clock of a host may be behind by so much
	agentScheme   = "gozzard"
	agentKind     = "agent:"
	serverKind    = "server:"
	relayKind     = "relay:"
)

// Authority signs the certificates of agents and of the server itself. While it is rotated there are two: the present
// one, which the server proves itself with, and the next one, which signs the certificates of agents that know it. It is
// safe for concurrent use.
type Authority struct {
	o AuthorityOptions

	mu      sync.RWMutex
	current *authorityKey
	next    *authorityKey // nil: no rotation is under way
}

// AuthorityOptions say where the keys of an Authority are. Dir is required.
type AuthorityOptions struct {
	Dir  string           // the data folder
	Now  func() time.Time // nil except in tests
	Life time.Duration    // how long the certificates of agents are valid; 0: CertLife

	// Outside has keys that are not in the data folder. nil: there are none.
	Outside signing.Outside
	// MakeOutside says that new keys are those of Outside.
	MakeOutside bool
}

// OpenAuthority reads the authority of a data folder. If there is none it creates one whose key only its owner can read.
func OpenAuthority(dir string, now func() time.Time) (*Authority, error) {
	return NewAuthority(AuthorityOptions{Dir: dir, Now: now})
}

// NewAuthority is OpenAuthority for keys that may be outside of the data folder.
func NewAuthority(o AuthorityOptions) (*Authority, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Life == 0 {
		o.Life = CertLife
	}

	// Bring the files of an older program into the present form.
	a := &Authority{o: o}
	if err := adoptOldFiles(o.Dir); err != nil {
		return nil, err
	}

	// Read the present authority, or make it.
	var err error
	if a.current, err = readAuthority(a.path(KeyFile), o.Outside); errors.Is(err, fs.ErrNotExist) {
		if err = a.checkLost(); err == nil {
			a.current, err = a.create(a.path(KeyFile), nil)
		}
	}
	if err != nil {
		return nil, err
	}

	// Read the next one, if there is one.
	a.next, err = readAuthority(a.path(NextKeyFile), o.Outside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	return a, a.publish(a.current, a.next)
}

func (a *Authority) path(name string) string { return filepath.Join(a.o.Dir, name) }

func (a *Authority) now() time.Time { return a.o.Now() }

// keys are the present authority and the next one; that is nil while none is made.
func (a *Authority) keys() (current, next *authorityKey) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.current, a.next
}

// PEM is the certificate of the authority that the server proves itself with.
func (a *Authority) PEM() []byte {
	current, _ := a.keys()
	return certPEM(current.cert.Raw)
}

// Bundle has the certificates of all authorities that are valid now, for clients that check their signatures.
func (a *Authority) Bundle() []byte {
	return bundle(a.keys())
}

// bundle has the certificates of one or two authorities, the present one first.
func bundle(current, next *authorityKey) []byte {
	b := certPEM(current.cert.Raw)
	if next != nil {
		b = append(b, certPEM(next.cert.Raw)...)
	}
	return b
}

// Pin is a digest that identifies the key of the authority that the server proves itself with.
func (a *Authority) Pin() string {
	current, _ := a.keys()
	return pinOf(current.cert)
}

// Pool contains the authorities that are valid now, and no others.
func (a *Authority) Pool() *x509.CertPool {
	return poolOf(a.keys())
}

// poolOf has the certificates of one or two authorities.
func poolOf(current, next *authorityKey) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(current.cert)
	if next != nil {
		pool.AddCert(next.cert)
	}
	return pool
}

// ServerCertificate creates a certificate of the server for ServerName and for the given names and addresses. Its key
// stays in memory.
func (a *Authority) ServerCertificate(names []string) (*tls.Certificate, error) {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: ServerName},
		DNSNames:    []string{ServerName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip, err := netip.ParseAddr(n); err == nil {
			t.IPAddresses = append(t.IPAddresses, ip.WithZone("").AsSlice())
		} else if n != "" {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	return a.signServer(t)
}

// signServer creates a certificate of the server itself, with a new key that stays in memory.
func (a *Authority) signServer(t *x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key for the server: %w", err)
	}

	// Complete the description.
	if t.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	t.NotBefore, t.NotAfter = a.now().Add(-clockSkew), a.now().Add(serverLife)
	t.KeyUsage, t.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true

	// Sign it.
	current, _ := a.keys()
	der, err := x509.CreateCertificate(rand.Reader, t, current.cert, key.Public(), current.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of the server: %w", err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of the server: %w", err)
	}

	return &tls.Certificate{Certificate: [][]byte{der, current.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// sign creates a certificate for an agent and the key of its request. While the authority is rotated, an agent that
// moves gets one of the next authority.
func (a *Authority) sign(csr *x509.CertificateRequest, id gozzard.AgentID, cloud int, serial *big.Int,
	moves bool) ([]byte, error) {
	der, err := a.signClient(csr, "agent", agentKind+strconv.Itoa(cloud)+"."+string(id), serial, moves)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of agent %s: %w", id, err)
	}
	return der, nil
}

// signClient creates a certificate with which its owner proves itself to servers. name says what the owner is.
func (a *Authority) signClient(csr *x509.CertificateRequest, common, name string, serial *big.Int, moves bool) ([]byte,
	error) {
	by, next := a.keys()
	if moves && next != nil {
		by = next
	}

	now := a.now()
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: common},
		URIs:                  []*url.URL{{Scheme: agentScheme, Opaque: name}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(a.o.Life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	return x509.CreateCertificate(rand.Reader, t, by.cert, csr.PublicKey, by.key)
}

// identity is the content of an agent's certificate.
type identity struct {
	agent     gozzard.AgentID
	cloud     int
	serial    string
	issued    time.Time
	until     time.Time
	authority string // pin of the authority that signed it
}

// identify checks the certificate of a connection and reads the agent's identity. The certificate may have expired for
// up to grace. TLS has proven that the client has its key.
func (a *Authority) identify(cs *tls.ConnectionState, grace time.Duration) (identity, error) {
	cert, by, err := a.verifyClient(cs, grace)
	if err != nil {
		return identity{}, err
	}

	// Read the agent and its cloud area.
	of, isAgent := clientName(cert, agentKind)
	if !isAgent {
		return identity{}, errors.New("the certificate is not that of an agent")
	}
	cloudText, id, _ := strings.Cut(of, ".")
	cloud, err := strconv.Atoi(cloudText)
	if err != nil || cloud < 0 {
		return identity{}, errors.New("the certificate names no cloud area")
	}

	out := identity{
		agent: gozzard.AgentID(id), cloud: cloud, serial: serialText(cert.SerialNumber),
		issued: cert.NotBefore.Add(clockSkew), until: cert.NotAfter, authority: pinOf(by),
	}
	return out, out.agent.Validate()
}

// verifyClient checks the signature and the time of the certificate of a connection, and returns the authority that
// signed it.
func (a *Authority) verifyClient(cs *tls.ConnectionState, grace time.Duration) (cert, by *x509.Certificate, err error) {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return nil, nil, errors.New("no certificate was shown")
	}

	cert = cs.PeerCertificates[0]
	at := a.now()
	if at.After(cert.NotAfter) && at.Before(cert.NotAfter.Add(grace)) {
		at = cert.NotAfter
	}

	chains, err := cert.Verify(x509.VerifyOptions{
		Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: at,
	})
	if err != nil {
		return nil, nil, err
	}
	return cert, chains[0][len(chains[0])-1], nil
}

// clientName reads what the owner of a certificate is; ok is false if it is of another kind.
func clientName(cert *x509.Certificate, kind string) (name string, ok bool) {
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != agentScheme {
		return "", false
	}
	return strings.CutPrefix(cert.URIs[0].Opaque, kind)
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("cannot create a serial number: %w", err)
	}
	return n.SetBit(n, 126, 1), nil // always of the same length and never 0
}

func serialText(n *big.Int) string { return hex.EncodeToString(n.Bytes()) }

func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
