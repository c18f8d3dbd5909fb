package enrol

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// The names of the keys of authorities that do not count yet: the server has them, and waits until all servers do. They are
// as secret as KeyFile. There are several if two servers rotate at the same time.
const (
	keptPrefix = "ca-next-"
	keptSuffix = ".key"
)

// ErrNotKept says that a server does not have the key of an authority.
var ErrNotKept = errors.New("this server does not have the key of the authority")

// Certificates are those of the present authority and of the next one, in PEM; next is "" while none is made.
func (a *Authority) Certificates() (current, next string) {
	c, n := a.keys()
	if n != nil {
		next = string(certPEM(n.cert.Raw))
	}
	return string(certPEM(c.cert.Raw)), next
}

// parseCertificate reads the certificate of an authority.
func parseCertificate(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != certificateBlock {
		return nil, errors.New("the certificate of the authority is damaged")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority is damaged: %w", err)
	}
	return cert, nil
}

// CertificatePin is the pin of an authority with a certificate in PEM.
func CertificatePin(text string) (string, error) {
	cert, err := parseCertificate(text)
	if err != nil {
		return "", err
	}
	return pinOf(cert), nil
}

// FollowsAuthority reports whether an authority was made after another one. Both are certificates in PEM.
func FollowsAuthority(text, other string) (bool, error) {
	cert, err := parseCertificate(text)
	if err != nil {
		return false, err
	}
	before, err := parseCertificate(other)
	return err == nil && cert.NotBefore.After(before.NotBefore), err
}

// MakeNext makes the authority after the present one, and returns the content of its file and its certificate. It is not
// used before Keep and Use.
func (a *Authority) MakeNext() (file []byte, certificate string, err error) {
	current, next := a.keys()
	if next != nil {
		return nil, "", errRotating()
	}
	k, file, err := a.makeKey(current)
	if err != nil {
		return nil, "", err
	}
	return file, string(certPEM(k.cert.Raw)), nil
}

// FileOf is the file of the present authority or of the next one, for another server of the same installation. Other
// authorities are ErrNotKept.
func (a *Authority) FileOf(pin string) ([]byte, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch {
	case pinOf(a.current.cert) == pin:
		return ReadKeyFile(a.o.Dir, false)
	case a.next != nil && pinOf(a.next.cert) == pin:
		return ReadKeyFile(a.o.Dir, true)
	}
	return nil, ErrNotKept
}

// Has reports whether this server has the key of an authority.
func (a *Authority) Has(pin string) bool {
	current, next := a.keys()
	if pinOf(current.cert) == pin || next != nil && pinOf(next.cert) == pin {
		return true
	}
	k, err := readAuthority(a.kept(pin), a.o.Outside)
	return err == nil && pinOf(k.cert) == pin
}

// Newest is the pin of the newest authority that this server uses.
func (a *Authority) Newest() string {
	current, next := a.keys()
	if next != nil {
		return pinOf(next.cert)
	}
	return pinOf(current.cert)
}

// kept is the path of an authority that does not count yet.
func (a *Authority) kept(pin string) string { return a.path(keptPrefix + pin + keptSuffix) }

// Keep stores the file of an authority that another server, or MakeNext, has made. Use uses it.
func (a *Authority) Keep(pin string, file []byte) error {
	k, err := parseAuthority(file, a.o.Outside) // this server must be able to sign with it
	if err == nil && !k.cert.IsCA {
		err = errors.New("its certificate is not for an authority")
	}
	if err == nil && pinOf(k.cert) != pin {
		err = fmt.Errorf("it is %s in place of %s", pinOf(k.cert), pin)
	}
	if err != nil {
		return fmt.Errorf("cannot use the authority of another server: %w", err)
	}
	if err := atomicfile.Write(a.kept(pin), file); err != nil {
		return fmt.Errorf("cannot save the key of the next authority: %w", err)
	}
	return nil
}

// Use makes an authority that was kept the next one. It returns ErrNotKept for one that was not. Forget should follow.
func (a *Authority) Use(pin string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil && pinOf(a.next.cert) == pin {
		return nil
	}
	next, err := readAuthority(a.kept(pin), a.o.Outside)
	if errors.Is(err, fs.ErrNotExist) || err == nil && pinOf(next.cert) != pin {
		return ErrNotKept
	}
	if err != nil {
		return err
	}

	// Only the rename counts: a crash before it changes nothing, and after it the next start writes the certificates.
	if err := os.Rename(a.kept(pin), a.path(NextKeyFile)); err != nil {
		return fmt.Errorf("cannot use the next authority: %w", err)
	}
	if err := atomicfile.SyncFolder(a.o.Dir); err != nil {
		return err
	}
	a.next = next
	return a.publish(a.current, next)
}

// Forget deletes authorities that were kept and cannot follow the present one any more. One that was made later stays: this
// server has said that it has it. While a rotation is under way no other one can win.
func (a *Authority) Forget() error {
	current, next := a.keys()
	list, err := filepath.Glob(a.path(keptPrefix + "*" + keptSuffix))
	if err != nil {
		return err
	}

	var failed []error
	for _, path := range list {
		pin := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), keptPrefix), keptSuffix)
		k, err := readAuthority(path, a.o.Outside)
		if err != nil || next == nil && pin == pinOf(k.cert) && k.cert.NotBefore.After(current.cert.NotBefore) {
			failed = append(failed, err)
			continue
		}
		failed = append(failed, os.Remove(path))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("cannot remove the key of an authority that does not count: %w", err)
	}
	return nil
}
