package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The names of the files that cover all other files of a release. The signature is that of `openssl pkeyutl -sign
// -rawin`, so it can be checked without this program.
const (
	sumsFile      = "SHA256SUMS"
	signatureFile = "SHA256SUMS.sig"
)

// sums is the text of a checksum file, in the form of sha256sum.
func sums(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir) // in the order of names
	if err != nil {
		return nil, err
	}

	var b bytes.Buffer
	for _, e := range entries {
		switch {
		case e.Name() == sumsFile || e.Name() == signatureFile:
			continue
		case !e.Type().IsRegular():
			return nil, fmt.Errorf("%s is not a file: a release is a folder of files", filepath.Join(dir, e.Name()))
		}
		sum, err := sumOf(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}

	if b.Len() == 0 {
		return nil, fmt.Errorf("%s has no files", dir)
	}

	return b.Bytes(), nil
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeSums(dir string) error {
	text, err := sums(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), text, 0o644)
}

func sign(keyFile, dir string) error {
	private, err := signingKey(keyFile)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, signatureFile), ed25519.Sign(private, text), 0o644)
}

// verify believes nothing in a folder before its signature: then the checksums must be those of its files, all of
// them and no others.
func verify(keyFile, dir string, out io.Writer) error {
	key, err := readKey(keyFile, "PUBLIC KEY", x509.ParsePKIXPublicKey)
	if err != nil {
		return err
	}

	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return fmt.Errorf("%s is not an Ed25519 key", keyFile)
	}

	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}

	signature, err := os.ReadFile(filepath.Join(dir, signatureFile))
	if err != nil {
		return err
	}
	if !ed25519.Verify(public, text, signature) {
		return fmt.Errorf("%s is not signed by %s", filepath.Join(dir, sumsFile), keyFile)
	}

	found, err := sums(dir)
	if err != nil {
		return err
	}
	if !bytes.Equal(found, text) {
		return fmt.Errorf("%s has other files than were signed: %s", dir, firstDifference(string(text), string(found)))
	}
	if err := verifyManifest(public, dir); err != nil {
		return err
	}

	_, err = fmt.Fprintf(out, "verified: %d files\n", bytes.Count(text, []byte("\n")))
	return err
}

func firstDifference(signed, found string) string {
	a, b := strings.Split(signed, "\n"), strings.Split(found, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("signed %q, found %q", a[i], b[i])
		}
	}
	return "one list is longer"
}

func readKey(path, kind string, parse func([]byte) (any, error)) (any, error) {
	if path == "" {
		return nil, errors.New("-key is required")
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s is not a PEM file with a %s", path, strings.ToLower(kind))
	}

	key, err := parse(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}

	return key, nil
}
