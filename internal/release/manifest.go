package release

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The names of the two files that describe a release.
const (
	ManifestName  = "release.json"
	SignatureName = "release.json.sig"
)

// The limits of a release.
const (
	MaxManifest = 64 << 10
	MaxFile     = 256 << 20
	maxFiles    = 32
	maxKey      = 4 << 10
)

const format = 1

// Manifest describes a release. Unknown fields are ignored, so that this program can read manifests of later versions.
type Manifest struct {
	Format  int       `json:"gozzard_release"` // also distinguishes a manifest from other texts that the release key signs
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"` // hosts do not install it from then on
	Files   []File    `json:"files"`
}

// File is the program for one platform.
type File struct {
	Platform string `json:"platform"` // such as linux/amd64
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"` // hexadecimal
}

// Parse parses a manifest. It does not check the signature: see Verify.
func Parse(b []byte) (*Manifest, error) {
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes, at most %d are allowed", len(b), MaxManifest)
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("the manifest cannot be used: %w", err)
	}
	return m, nil
}

// Encode returns the text of a manifest.
func (m *Manifest) Encode() ([]byte, error) {
	m.Format = format
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("cannot encode the manifest: %w", err)
	}
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// validate checks all fields.
func (m *Manifest) validate() error {
	if m.Format != format {
		return fmt.Errorf("its format is %d, this program supports %d", m.Format, format)
	}
	if _, err := ParseVersion(m.Version); err != nil {
		return err
	}
	if m.Created.IsZero() || !m.Expires.After(m.Created) {
		return errors.New("it must say when it was created and when it expires")
	}
	if len(m.Files) == 0 || len(m.Files) > maxFiles {
		return fmt.Errorf("it has %d files, 1 to %d are allowed", len(m.Files), maxFiles)
	}

	seen := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.validate(); err != nil {
			return err
		}
		if seen[f.Platform] || seen["/"+f.Name] {
			return fmt.Errorf("it has %s twice", f.Platform)
		}
		seen[f.Platform], seen["/"+f.Name] = true, true
	}

	return nil
}

// validate checks all fields. The name becomes a file name.
func (f *File) validate() error {
	system, arch, ok := strings.Cut(f.Platform, "/")
	if !ok || !plain(system, 32) || !plain(arch, 32) {
		return fmt.Errorf("%.80q is not a platform such as linux/amd64", f.Platform)
	}
	if !plain(f.Name, 128) || f.Name == ManifestName || f.Name == SignatureName {
		return fmt.Errorf("%.150q is not a name of a program", f.Name)
	}
	if f.Size <= 0 || f.Size > MaxFile {
		return fmt.Errorf("%s has %d bytes, 1 to %d are allowed", f.Name, f.Size, MaxFile)
	}
	if b, err := hex.DecodeString(f.SHA256); err != nil || len(b) != sha256.Size ||
		strings.ToLower(f.SHA256) != f.SHA256 {
		return fmt.Errorf("%s has no SHA-256 in hexadecimal", f.Name)
	}

	return nil
}

// plain reports whether a text can safely be a part of a path.
func plain(s string, most int) bool {
	if s == "" || len(s) > most || s[0] == '.' || s[0] == '-' {
		return false
	}
	return !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' ||
			c == '-')
	})
}

// Verify parses a manifest that the release key has signed. It checks the signature first.
func Verify(key ed25519.PublicKey, manifest, signature []byte) (*Manifest, error) {
	if len(manifest) > MaxManifest || len(signature) != ed25519.SignatureSize || len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, manifest, signature) {
		return nil, errors.New("the manifest is not signed by the release key")
	}
	return Parse(manifest)
}

// PublicKey parses a release key in PEM format, as openssl writes it.
func PublicKey(text []byte) (ed25519.PublicKey, error) {
	if len(text) > maxKey {
		return nil, errors.New("it is too long for a key")
	}

	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("it is not a PEM file with a public key")
	}

	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key cannot be read: %w", err)
	}

	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("it is not an Ed25519 key")
	}

	return public, nil
}

// For returns the program of a platform.
func (m *Manifest) For(platform string) (File, error) {
	for _, f := range m.Files {
		if f.Platform == platform {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("release %s has no program for %s", m.Version, platform)
}

// Admit checks whether a host may change from the version that it runs to this one. highest is the newest version that
// it ever ran, "" if unknown. downgrade: the owner of the host allows older versions.
func (m *Manifest) Admit(now time.Time, running, highest string, downgrade bool) error {
	if !now.Before(m.Expires) {
		return fmt.Errorf("release %s expired at %s", m.Version, m.Expires.UTC().Format(time.RFC3339))
	}
	if m.Version == running {
		return fmt.Errorf("release %s is already running", m.Version)
	}
	if downgrade {
		return nil
	}

	v, err := ParseVersion(m.Version)
	if err != nil {
		return err
	}

	for _, old := range []struct{ version, what string }{{running, "which runs"}, {highest, "which ran here before"}} {
		if old.version == "" {
			continue
		}
		o, err := ParseVersion(old.version)
		if err != nil {
			return fmt.Errorf("cannot decide whether release %s is newer: %w "+
				"(set allow_downgrade in the policy of this host to update nevertheless)", m.Version, err)
		}
		if v.Compare(o) <= 0 {
			return fmt.Errorf("release %s is not newer than %s, %s "+
				"(allow_downgrade in the policy of this host would allow it)", m.Version, old.version, old.what)
		}
	}

	return nil
}

// Copy copies the program of a release and fails if any bit differs from the signed one. It never reads more than one
// byte beyond the signed size.
func (f *File) Copy(to io.Writer, from io.Reader) error {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(from, f.Size+1))
	switch {
	case err != nil:
		return fmt.Errorf("cannot copy %s: %w", f.Name, err)
	case n < f.Size:
		return fmt.Errorf("%s is truncated: it has %d bytes of %d", f.Name, n, f.Size)
	case n > f.Size:
		return fmt.Errorf("%s is longer than the %d bytes that were signed", f.Name, f.Size)
	case hex.EncodeToString(h.Sum(nil)) != f.SHA256:
		return fmt.Errorf("%s is not the file that was signed: its SHA-256 is another", f.Name)
	}

	return nil
}
