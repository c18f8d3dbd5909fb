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
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

const (
	// ServerName is the name that agents ask the server for. It does not depend on how the server is reached, and
	// no agent's certificate has it.
	ServerName = "server.gozzard.internal"

	// CertLife is how long the certificate of an agent counts.
	CertLife = 24 * time.Hour

	authorityFile = "ca.pem"
	authorityLife = 20 * 365 * 24 * time.Hour
	serverLife    = 90 * 24 * time.Hour
	clockSkew     = time.Hour // by which clocks of hosts may be behind
	agentScheme   = "gozzard"
	agentKind     = "agent:"
)

// Authority signs the certificates of agents and of the server itself.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
}

// OpenAuthority reads the authority of a data folder and makes it at the first start, readable by its owner only.
func OpenAuthority(dir string, now func() time.Time) (*Authority, error) {
	if now == nil {
		now = time.Now
	}

	path := filepath.Join(dir, authorityFile)
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeAuthority(path, now)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority: %w", err)
	}

	cert, key, err := parsePair(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority in %s: %w", path, err)
	}
	if !cert.IsCA {
		return nil, fmt.Errorf("cannot use the authority in %s: its certificate may not sign", path)
	}

	return &Authority{cert: cert, key: key, now: now}, nil
}

func makeAuthority(path string, now func() time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key for the authority: %w", err)
	}

	serial, err := newSerial()
	if err != nil {
		return nil, err
	}

	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "gozzard " + serial.Text(16)[:8]},
		NotBefore: now().Add(-clockSkew), NotAfter: now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make the authority: %w", err)
	}

	b, err := encodePair(der, key)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, b); err != nil {
		return nil, err
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority just made: %w", err)
	}

	return &Authority{cert: cert, key: key, now: now}, nil
}

// PEM is the certificate of the authority, for those who check its signatures.
func (a *Authority) PEM() []byte { return certPEM(a.cert.Raw) }

// Pin names the key of the authority.
func (a *Authority) Pin() string { return pinOf(a.cert) }

// Pool trusts this authority and no other.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// ServerCertificate makes a certificate of the server for ServerName and the names and addresses given. The key
// stays in memory.
func (a *Authority) ServerCertificate(names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key for the server: %w", err)
	}

	serial, err := newSerial()
	if err != nil {
		return nil, err
	}

	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName},
		NotBefore: a.now().Add(-clockSkew), NotAfter: a.now().Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip, err := netip.ParseAddr(n); err == nil {
			t.IPAddresses = append(t.IPAddresses, ip.WithZone("").AsSlice())
		} else if n != "" {
			t.DNSNames = append(t.DNSNames, n)
		}
	}

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

// sign gives the key of a request to an agent.
func (a *Authority) sign(csr *x509.CertificateRequest, id gozzard.AgentID, cloud int, serial *big.Int) ([]byte, error) {
	now := a.now()
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "agent"},
		URIs:      []*url.URL{{Scheme: agentScheme, Opaque: agentKind + strconv.Itoa(cloud) + "." + string(id)}},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(CertLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign the certificate of agent %s: %w", id, err)
	}

	return der, nil
}

// identity is what a certificate says.
type identity struct {
	agent  gozzard.AgentID
	cloud  int
	serial string
	issued time.Time
	until  time.Time
}

// identify reads the certificate that somebody has shown and proven to own. grace is by how much it may be over.
func (a *Authority) identify(cs *tls.ConnectionState, grace time.Duration) (identity, error) {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return identity{}, errors.New("no certificate was shown")
	}

	cert := cs.PeerCertificates[0]
	at := a.now()
	if at.After(cert.NotAfter) && at.Before(cert.NotAfter.Add(grace)) {
		at = cert.NotAfter
	}

	_, err := cert.Verify(x509.VerifyOptions{Roots: a.Pool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: at})
	if err != nil {
		return identity{}, err
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != agentScheme {
		return identity{}, errors.New("the certificate is not an agent's")
	}

	cloudText, id, _ := strings.Cut(strings.TrimPrefix(cert.URIs[0].Opaque, agentKind), ".")
	cloud, err := strconv.Atoi(cloudText)
	if err != nil || cloud < 0 {
		return identity{}, errors.New("the certificate names no cloud area")
	}

	out := identity{agent: gozzard.AgentID(id), cloud: cloud, serial: serialText(cert.SerialNumber),
		issued: cert.NotBefore.Add(clockSkew), until: cert.NotAfter}
	return out, out.agent.Validate()
}

func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("cannot draw a serial number: %w", err)
	}
	return n.SetBit(n, 126, 1), nil // of one length and never 0
}

func serialText(n *big.Int) string { return hex.EncodeToString(n.Bytes()) }

func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodePair(der []byte, key *ecdsa.PrivateKey) ([]byte, error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}), certPEM(der)...), nil
}

// parsePair reads a key and its certificate; anything else in the text is refused.
func parsePair(b []byte) (cert *x509.Certificate, key *ecdsa.PrivateKey, err error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PRIVATE KEY":
			k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, nil, err
			}
			var ok bool
			if key, ok = k.(*ecdsa.PrivateKey); !ok {
				return nil, nil, errors.New("the key is of another kind")
			}
		case "CERTIFICATE":
			if cert, err = x509.ParseCertificate(block.Bytes); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, fmt.Errorf("has a block %q", block.Type)
		}
	}

	if cert == nil || key == nil {
		return nil, nil, errors.New("key or certificate is missing")
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, errors.New("key and certificate do not belong together")
	}

	return cert, key, nil
}

// readPrivate reads a file that others must not read.
func readPrivate(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	return os.ReadFile(path)
}
