//go:build linux

package fleettest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/release"
)

// ReleaseKey is a key that signs releases.
type ReleaseKey struct {
	private ed25519.PrivateKey
	PEM     []byte // the public key, as a host has it
}

// NewReleaseKey makes a key.
func NewReleaseKey(t testing.TB) ReleaseKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return ReleaseKey{private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
}

// ReleaseOf makes a release of one program for this platform. change changes the manifest before it is signed.
func (k ReleaseKey) ReleaseOf(t testing.TB, version, file string, change func(*release.Manifest)) (dir string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	// Describe the program.
	sum := sha256.Sum256(text)
	m := &release.Manifest{Version: version, Created: time.Now().Add(-time.Hour), Expires: time.Now().Add(time.Hour),
		Files: []release.File{{
			Platform: runtime.GOOS + "/" + runtime.GOARCH, Name: "gozzard-program", Size: int64(len(text)),
			SHA256: hex.EncodeToString(sum[:]),
		}}}
	if change != nil {
		change(m)
	}
	manifest, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}

	// Sign the description.
	dir = t.TempDir()
	for name, b := range map[string][]byte{release.ManifestName: manifest,
		release.SignatureName: ed25519.Sign(k.private, manifest)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Link(file, filepath.Join(dir, "gozzard-program")); err != nil {
		CopyProgram(t, file, filepath.Join(dir, "gozzard-program"))
	}
	return dir
}
