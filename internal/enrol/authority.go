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
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

const (
	// ServerName is the host name that agents expect in the certificate of the server. It does not depend on the
	// address of the server, and no certificate of an agent has it.
	ServerName = "server.gozzard.internal"

	// CertLife is how long the certificate of an agent is valid.
	CertLife = 24 * time.Hour

	authorityFile = "ca.pem"
	authorityLife = 20 * 365 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	clockSkew     = time.Hour // the clock of a host may be behind by so much
	agentScheme   = "gozzard"
	agentKind     = "agent:"
)

// Authority signs the certificates of agents and of the server itself.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
}

// OpenAuthority reads the authority of a data folder. If there is none it creates one that only its owner can read.
func OpenAuthority(dir string, now func() time.Time) (*Authority, error) {
	if now == nil {
		now = time.Now
	}

	path := filepath.Join(dir, authorityFile)
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(path, now)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority: %w", err)
	}

	cert, key, err := parsePair(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority in %s: %w", path, err)
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("cannot use the authority in %s: its certificate is not for an authority", path)
	}

	return &Authority{cert: cert, key: key, now: now}, nil
}

// createAuthority creates a key and a certificate that signs others, and saves both.
func createAuthority(path string, now func() time.Time) (*Authority, error) {
	// Create a key and its certificate.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key for the authority: %w", err)
	}

	serial, err := newSerial()
	if err != nil {
		return nil, err
	}

	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "gozzard " + serial.Text(16)[:8]},
		NotBefore:             now().Add(-clockSkew),
		NotAfter:              now().Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot create the authority: %w", err)
	}

	// Save them.
	b, err := encodePair(der, key)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, b); err != nil {
		return nil, err
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the new authority: %w", err)
	}

	return &Authority{cert: cert, key: key, now: now}, nil
}

// PEM is the certificate of the authority, for clients that check its signatures.
func (a *Authority) PEM() []byte { return certPEM(a.cert.Raw) }

// Pin is a digest that identifies the key of the authority.
func (a *Authority) Pin() string { return pinOf(a.cert) }

// Pool contains this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// ServerCertificate creates a certificate of the server for ServerName and for the given names and addresses. Its key
// stays in memory.
func (a *Authority) ServerCertificate(names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot create a key for the server: %w", err)
	}

	serial, err := newSerial()
	if err != nil {
		return nil, err
	}

	// Describe the certificate.
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: ServerName},
		DNSNames:              []string{ServerName},
		NotBefore:             a.now().Add(-clockSkew),
		NotAfter:              a.now().Add(serverLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip, err := netip.ParseAddr(n); err == nil {
			t.IPAddresses = append(t.IPAddresses, ip.WithZone("").AsSlice())
		} else if n != "" {
			t.DNSNames = append(t.DNSNames, n)
		}
	}

	// Sign it.
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of the server: %w", err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of the server: %w", err)
	}

	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// sign creates a certificate for an agent and the key of its request.
func (a *Authority) sign(csr *x509.CertificateRequest, id gozzard.AgentID, cloud int, serial *big.Int) ([]byte, error) {
	now := a.now()
	uri := &url.URL{Scheme: agentScheme, Opaque: agentKind + strconv.Itoa(cloud) + "." + string(id)}
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "agent"},
		URIs:                  []*url.URL{uri},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(CertLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of agent %s: %w", id, err)
	}

	return der, nil
}

// identity is the content of an agent's certificate.
type identity struct {
	agent  gozzard.AgentID
	cloud  int
	serial string
	issued time.Time
	until  time.Time
}

// identify checks the certificate of a connection and reads the agent's identity. The certificate may have expired for
// up to grace. TLS has proven that the client has its key.
func (a *Authority) identify(cs *tls.ConnectionState, grace time.Duration) (identity, error) {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return identity{}, errors.New("no certificate was shown")
	}

	// Check the signature and the time.
	cert := cs.PeerCertificates[0]
	at := a.now()
	if at.After(cert.NotAfter) && at.Before(cert.NotAfter.Add(grace)) {
		at = cert.NotAfter
	}

	_, err := cert.Verify(x509.VerifyOptions{
		Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: at,
	})
	if err != nil {
		return identity{}, err
	}

	// Read the agent and its cloud area.
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != agentScheme {
		return identity{}, errors.New("the certificate is not that of an agent")
	}

	cloudText, id, _ := strings.Cut(strings.TrimPrefix(cert.URIs[0].Opaque, agentKind), ".")
	cloud, err := strconv.Atoi(cloudText)
	if err != nil || cloud < 0 {
		return identity{}, errors.New("the certificate names no cloud area")
	}

	out := identity{
		agent: gozzard.AgentID(id), cloud: cloud, serial: serialText(cert.SerialNumber),
		issued: cert.NotBefore.Add(clockSkew), until: cert.NotAfter,
	}
	return out, out.agent.Validate()
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
