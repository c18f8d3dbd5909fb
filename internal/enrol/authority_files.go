package enrol

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// The files of an authority in a data folder. The key file has the key and its certificate, so that one rename
// replaces both. The certificate file is made from the key files at every start: losing it loses nothing.
const (
	CertificateFile = "ca.pem"      // the certificates that people hand out
	KeyFile         = "ca.key"      // the key of the present authority, with its certificate
	NextKeyFile     = "ca-next.key" // the key of the next one, while the authority is rotated

	// OldNextFile is NextKeyFile of a folder that an older program wrote. There CertificateFile has the key, too.
	OldNextFile = "ca-next.pem"
)

// adoptOldFiles renames the key files of an older program. Each rename is complete or did not happen, and the next start
// continues where this one ended.
func adoptOldFiles(dir string) error {
	old := []struct{ from, to string }{{CertificateFile, KeyFile}, {OldNextFile, NextKeyFile}}
	for _, f := range old {
		from, to := filepath.Join(dir, f.from), filepath.Join(dir, f.to)

		// Only a file with a key is one of an older program.
		b, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the authority: %w", err)
		}
		if !hasKey(b) {
			continue
		}
		if _, err := readPrivate(from); err != nil {
			return fmt.Errorf("cannot read the authority: %w", err)
		}

		// Never replace a key: the other one may be the one that the hosts know.
		if _, err := os.Lstat(to); err == nil {
			return fmt.Errorf("cannot read the authority: %s and %s both have a key. %s counts: check that it is the right "+
				"one, then move %s out of the folder", from, to, f.to, f.from)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read the authority: %w", err)
		}
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("cannot move the key of the authority to %s: %w", to, err)
		}
	}

	return atomicfile.SyncFolder(dir)
}

// hasKey reports whether a PEM text has a key, or the name of one in an external signer.
func hasKey(b []byte) bool {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			return true
		}
	}
	return false
}

// checkLost rejects a folder that has the certificate of an authority but not its key. A new authority would cut off
// every host.
func (a *Authority) checkLost() error {
	b, err := os.ReadFile(a.path(CertificateFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the authority: %w", err)
	}
	return fmt.Errorf("cannot read the authority: %s is missing, but its certificate %s is there. Put the key back, or "+
		"restore a backup. To make a new authority, remove %s: then every host must join again",
		a.path(KeyFile), a.path(CertificateFile), a.path(CertificateFile))
}

// publish writes the certificates of the authorities so that every account can read them. next may be nil.
func (a *Authority) publish(current, next *authorityKey) error {
	want := bundle(current, next)
	path := a.path(CertificateFile)
	if b, err := os.ReadFile(path); err == nil && bytes.Equal(b, want) {
		return nil
	}
	return atomicfile.WritePublic(path, want)
}

// ReadKeyFile reads the key file of an authority as it is, in the form of this program or of an older one. next means
// the next authority. If there is none, the error is fs.ErrNotExist. The server may start meanwhile.
func ReadKeyFile(dir string, next bool) ([]byte, error) {
	name, old := KeyFile, CertificateFile
	if next {
		name, old = NextKeyFile, OldNextFile
	}

	b, err := readPrivate(filepath.Join(dir, name))
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}

	// The file of an older program, unless the server has renamed it just now.
	b, err = os.ReadFile(filepath.Join(dir, old))
	if err == nil && hasKey(b) {
		return readPrivate(filepath.Join(dir, old))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return readPrivate(filepath.Join(dir, name))
}

// ReadPin reads the pin of the authority in a data folder, without its key.
func ReadPin(dir string) (string, error) {
	b, err := ReadKeyFile(dir, false)
	if err != nil {
		return "", fmt.Errorf("cannot read the authority: %w", err)
	}
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return "", fmt.Errorf("cannot read the authority in %s: %w", dir, err)
			}
			return pinOf(cert), nil
		}
	}
	return "", fmt.Errorf("cannot read the authority in %s: it has no certificate", dir)
}
