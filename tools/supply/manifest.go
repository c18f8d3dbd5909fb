package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/release"
)

// writeManifest writes down what agents check before they update themselves: the version, its end and every program
// of a folder.
func writeManifest(version, days, dir string, out io.Writer) error {
	if _, err := release.ParseVersion(version); err != nil {
		_, err = fmt.Fprintf(out, "supply: no manifest, so no agent updates itself to this: %v\n", err)
		return err
	}

	life, err := time.ParseDuration(days + "h")
	if err != nil || life <= 0 {
		return fmt.Errorf("-days %q is no number of days", days)
	}

	now := time.Now().UTC().Truncate(time.Second)
	m := &release.Manifest{Version: version, Created: now, Expires: now.Add(24 * life)}
	paths, err := filepath.Glob(filepath.Join(dir, "gozzard-*"))
	if err != nil {
		return err
	}

	for _, path := range paths {
		f, err := program(path)
		if err != nil {
			return err
		}
		if f.Platform != "" {
			m.Files = append(m.Files, f)
		}
	}

	text, err := m.Encode()
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(dir, release.ManifestName), text, 0o644)
}

// program describes gozzard-SYSTEM-ARCH; what has another name has no platform.
func program(path string) (f release.File, err error) {
	name := filepath.Base(path)
	system, arch, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(name, ".exe"), "gozzard-"), "-")
	if !ok || strings.ContainsAny(arch, ".-") {
		return f, nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	sum, err := sumOf(path)
	return release.File{Platform: system + "/" + arch, Name: name, Size: st.Size(), SHA256: sum}, err
}

// signManifest signs what writeManifest wrote.
func signManifest(keyFile, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, release.ManifestName))
	if errors.Is(err, fs.ErrNotExist) { // the version is none that could be compared
		return nil
	}
	if err != nil {
		return err
	}
	private, err := signingKey(keyFile)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, release.SignatureName), ed25519.Sign(private, text), 0o644)
}

func signingKey(file string) (ed25519.PrivateKey, error) {
	key, err := readKey(file, "PRIVATE KEY", x509.ParsePKCS8PrivateKey)
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not an Ed25519 key", file)
	}
	return private, nil
}

// verifyManifest: a manifest that is there must be signed, and its programs be the files beside it.
func verifyManifest(public ed25519.PublicKey, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, release.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	signature, err := os.ReadFile(filepath.Join(dir, release.SignatureName))
	if err != nil {
		return err
	}

	m, err := release.Verify(public, text, signature)
	if err != nil {
		return err
	}

	for _, f := range m.Files {
		if sum, err := sumOf(filepath.Join(dir, f.Name)); err != nil || sum != f.SHA256 {
			return errors.Join(fmt.Errorf("%s is not the file of the manifest", f.Name), err)
		}
	}

	return nil
}
