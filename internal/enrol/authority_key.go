package enrol

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/signing"
)

// authorityKey is a certificate that signs others, and its key.
type authorityKey struct {
	cert   *x509.Certificate
	key    crypto.Signer
	name   string // of a key that is not in the data folder
	secret []byte // from which the keys of tickets are derived
}

// outsideBlock is the block that stands in place of a key that is not in the data folder. It contains the key's name.
const outsideBlock = "GOZZARD EXTERNAL KEY"

// algorithmECDSA is ECDSA on P-256 of a SHA-256 digest.
const algorithmECDSA = "ecdsa-sha256"

// readAuthority reads an authority. outside has its key if the file has none.
func readAuthority(path string, outside signing.Outside) (*authorityKey, error) {
	b, err := readPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority: %w", err)
	}
	k, err := parseAuthority(b, outside)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority in %s: %w", path, err)
	}
	if !k.cert.IsCA {
		return nil, fmt.Errorf("cannot use the authority in %s: its certificate is not for an authority", path)
	}
	return k, nil
}

// parseAuthority reads a certificate and its key, or the name of a key that outside has.
func parseAuthority(b []byte, outside signing.Outside) (*authorityKey, error) {
	// A key in the file.
	block, rest := pem.Decode(b)
	if block == nil || block.Type != outsideBlock {
		cert, key, err := parsePair(b)
		if err != nil {
			return nil, err
		}
		private, err := key.ECDH()
		if err != nil {
			return nil, fmt.Errorf("the key cannot be used: %w", err)
		}
		return &authorityKey{cert: cert, key: key, secret: private.Bytes()}, nil
	}

	// A key that is not in the file.
	name := string(block.Bytes)
	if block, rest = pem.Decode(rest); block == nil || block.Type != certificateBlock || len(rest) > 0 {
		return nil, errors.New("its certificate is missing")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if outside == nil {
		return nil, fmt.Errorf("its key %s is in an external signer: start the server with --signer-command", name)
	}
	key, err := outsideSigner(outside, name)
	if err != nil {
		return nil, err
	}
	if !key.public.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("key %s of the external signer is not the key of its certificate", name)
	}
	return &authorityKey{cert: cert, key: key, name: name, secret: randomSecret()}, nil
}

// randomSecret is for tickets that are valid until the server ends.
func randomSecret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return b
}

// create makes an authority and saves it. before is the authority that it follows; nil: it is the first one.
func (a *Authority) create(path string, before *authorityKey) (*authorityKey, error) {
	k, text, err := a.makeKey(before)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, text); err != nil {
		return nil, err
	}
	return k, nil
}

// makeKey creates a key, or takes the one of the external signer, and makes a certificate that signs others. text is the
// content of the file of both.
func (a *Authority) makeKey(before *authorityKey) (k *authorityKey, text []byte, err error) {
	// Get a key.
	k = &authorityKey{}
	if a.o.MakeOutside && a.o.Outside != nil {
		k.name = before.nextName()
		key, err := outsideSigner(a.o.Outside, k.name)
		if err != nil {
			return nil, nil, err
		}
		if before != nil && key.public.Equal(before.cert.PublicKey) {
			return nil, nil, fmt.Errorf("key %s of the external signer is the key of the present authority", k.name)
		}
		k.key, k.secret = key, randomSecret()
		text = pem.EncodeToMemory(&pem.Block{Type: outsideBlock, Bytes: []byte(k.name)})
	} else {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot create a key for the authority: %w", err)
		}
		private, err := key.ECDH()
		if err != nil {
			return nil, nil, fmt.Errorf("cannot create a key for the authority: %w", err)
		}
		k.key, k.secret = key, private.Bytes()
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
		}
		text = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}

	// Make its certificate.
	if err := k.certify(a, before); err != nil {
		return nil, nil, err
	}
	return k, append(text, certPEM(k.cert.Raw)...), nil
}

// certify makes the certificate of an authority. It begins after the one before, whatever the clock says: the beginning
// shows which of two authorities is the newer one.
func (k *authorityKey) certify(a *Authority, before *authorityKey) error {
	serial, err := newSerial()
	if err != nil {
		return err
	}
	begins := a.now().Add(-clockSkew)
	if before != nil && !begins.After(before.cert.NotBefore.Add(time.Second)) {
		begins = before.cert.NotBefore.Add(time.Second)
	}

	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "gozzard " + serial.Text(16)[:8]},
		NotBefore:             begins,
		NotAfter:              a.now().Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, k.key.Public(), k.key)
	if err != nil {
		return fmt.Errorf("cannot create the authority: %w", err)
	}
	if k.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("cannot read the new authority: %w", err)
	}
	return nil
}

// IsOutside reports whether a key of the authority is in an external signer.
func (a *Authority) IsOutside() bool {
	current, next := a.keys()
	return current.name != "" || next != nil && next.name != ""
}

// nextName is the name of the key that follows in the external signer.
func (k *authorityKey) nextName() string {
	const prefix = "authority-"
	n := 0
	if k != nil {
		n, _ = strconv.Atoi(strings.TrimPrefix(k.name, prefix)) // 0 for a key in the data folder
	}
	return prefix + strconv.Itoa(n+1)
}

// outsideECDSA is a key of the external signer.
type outsideECDSA struct {
	outside signing.Outside
	name    string
	public  *ecdsa.PublicKey
}

// outsideSigner asks for the key of a name.
func outsideSigner(o signing.Outside, name string) (*outsideECDSA, error) {
	public, err := o.Public(name)
	if err != nil {
		return nil, fmt.Errorf("the external signer does not give the public key of %s: %w", name, err)
	}
	key, ok := public.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("key %s of the external signer is not an ECDSA key on P-256", name)
	}
	return &outsideECDSA{outside: o, name: name, public: key}, nil
}

// Public implements crypto.Signer.
func (k *outsideECDSA) Public() crypto.PublicKey { return k.public }

// Sign implements crypto.Signer. It checks the signature: a wrong one would be found only by the agents.
func (k *outsideECDSA) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if opts.HashFunc() != crypto.SHA256 {
		return nil, fmt.Errorf("key %s signs SHA-256 digests only", k.name)
	}
	signature, err := k.outside.Sign(k.name, algorithmECDSA, digest)
	if err != nil {
		return nil, fmt.Errorf("the external signer does not sign with %s: %w", k.name, err)
	}
	if !ecdsa.VerifyASN1(k.public, digest, signature) {
		return nil, fmt.Errorf("the external signer returned a signature that is not of key %s", k.name)
	}
	return signature, nil
}

// errRotating refuses a second rotation.
func errRotating() error {
	return gozzard.Errorf(gozzard.ErrConflict,
		"the authority is being rotated already: see gozzard key status; to end it: gozzard key rotate authority --finish")
}

// Rotate makes the next authority. From then on the certificates of agents that know it are signed by it, and those of
// both are valid.
func (a *Authority) Rotate() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		return errRotating()
	}
	next, err := a.create(a.path(NextKeyFile), a.current)
	if err != nil {
		return err
	}
	if err := a.publish(a.current, next); err != nil {
		return errors.Join(err, os.Remove(a.path(NextKeyFile)))
	}

	a.next = next
	return nil
}

// Finish puts the next authority in the place of the present one, whose key is deleted.
func (a *Authority) Finish() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		return gozzard.Errorf(gozzard.ErrConflict, "the authority is not being rotated: begin with gozzard key rotate authority")
	}

	// Publish first: after the rename nothing may fail, and a crash before it is repaired by the next start.
	if err := a.publish(a.next, nil); err != nil {
		return err
	}
	if err := os.Rename(a.path(NextKeyFile), a.path(KeyFile)); err != nil {
		return fmt.Errorf("cannot replace the authority: %w", err)
	}
	if err := atomicfile.SyncFolder(a.o.Dir); err != nil {
		return err
	}

	a.current, a.next = a.next, nil
	return nil
}
