package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/release"
)

const (
	mit  = "Permission is hereby granted, free of charge, to any person\nobtaining a copy ... this permission notice shall be\nincluded in all copies"
	bsd3 = "Redistribution and use in source and binary forms ... Redistributions in binary form must reproduce ... endorse or promote products derived from"
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		mit: "MIT", bsd3: "BSD-3-Clause", mit + bsd3: "MIT BSD-3-Clause",
		"Redistribution and use in source and binary forms; Redistributions in binary form must reproduce": "BSD-2-Clause",
		bsd3 + " All advertising materials": "BSD-4-Clause",
		"                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007": "GPL",
		"Mozilla Public License, version 2.0": "MPL-2.0", "All rights reserved.": "",
	} {
		if got := strings.Join(classify(text), " "); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// TestLicencesOfAModule: one file that is unknown, forbidden or missing is enough to refuse.
func TestLicencesOfAModule(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
		err   string
	}{
		"plain":           {map[string]string{"LICENSE": mit}, "MIT", ""},
		"spelt otherwise": {map[string]string{"COPYING.txt": bsd3}, "BSD-3-Clause", ""},
		"part of its own": {map[string]string{"LICENSE": mit, "part/LICENSE": bsd3}, "BSD-3-Clause MIT", ""},
		"notice":          {map[string]string{"LICENSE": mit, "NOTICE": "thanks"}, "MIT", ""},
		"list of others": {map[string]string{"LICENSE": mit,
			"LICENSE-3RD-PARTY.md": "Mozilla Public License, version 2.0"}, "MIT", ""},
		"none":        {map[string]string{"README": mit}, "", "has no licence"},
		"notice only": {map[string]string{"NOTICE": mit}, "", "has no licence"},
		"unknown":     {map[string]string{"LICENSE": "ask us"}, "", "of no known kind"},
		"forbidden": {map[string]string{"LICENSE": "GNU Affero General Public License version 3"}, "",
			"AGPL-3.0, which is not allowed"},
		"forbidden part": {map[string]string{"LICENSE": mit, "part/LICENSE": "Business Source License"}, "",
			"BUSL-1.1, which is not allowed"},
		"forbidden beside": {map[string]string{"LICENSE": mit, "LICENSE-GPL": "GNU General Public License version 2"},
			"", "GPL, which is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			part := filepath.Join(dir, "part")
			if err := os.Mkdir(part, 0o755); err != nil {
				t.Fatal(err)
			}

			for file, text := range tt.files {
				write(t, filepath.Join(dir, filepath.FromSlash(file)), []byte(text))
			}

			m := &module{Path: "example.org/m", Dir: dir, files: map[string]bool{}}
			if err := m.look(part); err != nil {
				t.Fatal(err)
			}

			ids, err := m.licences()
			if strings.Join(ids, " ") != tt.want || (err == nil) != (tt.err == "") || err != nil &&
				!strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q, %v", ids, err)
			}
		})
	}
}

// TestLicencesOfThisProgram is the check of `make check` for this platform.
func TestLicencesOfThisProgram(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"licences", "github.com/gozzard/gozzard/cmd/gozzard"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.com/nats-io/nats-server/v2 v", "BSD-3-Clause                std go1.",
		"licences: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestBill reads the bill of a small binary of this module: complete, with licences, and the same every time.
func TestBill(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "supply")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin,
		"github.com/gozzard/gozzard/tools/supply")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}

	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run([]string{"sbom", "-version", "v1.2.3+x", bin}, out); err != nil {
			t.Fatal(err)
		}
	}

	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of one binary")
	}

	var b bill
	if err := json.Unmarshal(first.Bytes(), &b); err != nil {
		t.Fatal(err)
	}

	app := b.Metadata.Component
	if b.Format != "CycloneDX" || b.Version != "1.6" || len(b.Serial) != len("urn:uuid:")+36 ||
		app.Version != "v1.2.3+x" || app.URL != "pkg:golang/github.com/gozzard/gozzard@v1.2.3%2Bx" {
		t.Errorf("%+v", b)
	}

	if len(b.Components) == 0 || b.Components[0].Name != "std" ||
		b.Components[0].Licences[0].License.ID != "BSD-3-Clause" || len(app.Hashes[0].Content) != 64 {
		t.Errorf("%+v", b.Components)
	}

	if err := run([]string{"sbom", "supply_test.go"}, &first); err == nil {
		t.Error("a bill of a source file")
	}
}

// TestSignedRelease: one changed, added, removed or renamed file, another key or another signature, and a release
// is not one.
func TestSignedRelease(t *testing.T) {
	keys, dir := t.TempDir(), t.TempDir()
	private, public := keyPair(t, keys, "release")
	_, stranger := keyPair(t, keys, "stranger")

	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name), []byte("file "+name))
	}

	for _, args := range [][]string{{"sums", dir}, {"sign", "-key", private, dir}, {"verify", "-key", public, dir}} {
		if err := run(args, new(bytes.Buffer)); err != nil {
			t.Fatal(err)
		}
	}

	if path, err := exec.LookPath("openssl"); err == nil { // others can check it too
		out, err := exec.Command(path, "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in",
			filepath.Join(dir, sumsFile), "-sigfile", filepath.Join(dir, signatureFile)).CombinedOutput()
		if err != nil {
			t.Errorf("openssl: %v\n%s", err, out)
		}
	}

	for name, change := range map[string]func(dir string) string{
		"another key": func(string) string { return stranger },
		"changed file": func(dir string) string {
			write(t, filepath.Join(dir, "a"),
				[]byte("file A"))
			return public
		},
		"added file":   func(dir string) string { write(t, filepath.Join(dir, "c"), nil); return public },
		"removed file": func(dir string) string { os.Remove(filepath.Join(dir, "a")); return public },
		"link":         func(dir string) string { os.Symlink("a", filepath.Join(dir, "c")); return public },
		"changed sums": func(dir string) string {
			write(t, filepath.Join(dir, "a"),
				[]byte("x"))
			writeSums(dir)
			return public
		},
		"cut signature": func(dir string) string {
			os.Truncate(filepath.Join(dir, signatureFile),
				63)
			return public
		},
		"no signature":    func(dir string) string { os.Remove(filepath.Join(dir, signatureFile)); return public },
		"the private key": func(string) string { return private },
	} {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"verify", "-key", change(copied), copied}, new(bytes.Buffer)); err == nil {
			t.Errorf("%s: verified", name)
		}
	}

	for _, args := range [][]string{nil, {"sums"}, {"nothing", dir}, {"sign", dir}, {"sums", "a", "b"},
		{"sums", t.TempDir()}, {"sign", "-key", public, dir}} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q was done", args)
		}
	}
}

func keyPair(t *testing.T, dir, name string) (private, public string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}

	privDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}

	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}

	private, public = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".pub")
	write(t, private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privDER}))
	write(t, public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pubDER}))
	return private, public
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTE8Manifest: the manifest of a release names every program, ends, and is part of what is verified.
func TestTE8Manifest(t *testing.T) {
	private, public := keyPair(t, t.TempDir(), "release")
	dir := t.TempDir()
	for _, name := range []string{"gozzard-linux-amd64", "gozzard-windows-amd64.exe", "gozzard-linux-amd64.cdx.json",
		"LICENSE"} {
		write(t, filepath.Join(dir, name), []byte("file "+name))
	}

	do := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(args, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}

	if out := do("manifest", "-version", "abc1234", dir); !strings.Contains(out, "no manifest") {
		t.Error(out)
	}

	do("signmanifest", "-key", private, dir)
	do("manifest", "-version", "1.2.3", "-days", "10", dir)
	do("signmanifest", "-key", private, dir)
	do("sums", dir)
	do("sign", "-key", private, dir)
	do("verify", "-key", public, dir)
	text, err := os.ReadFile(filepath.Join(dir, release.ManifestName))
	if err != nil {
		t.Fatal(err)
	}

	m, err := release.Parse(text)
	if err != nil || len(m.Files) != 2 || m.Files[1].Platform != "windows/amd64" ||
		m.Expires.Sub(m.Created) != 240*time.Hour {
		t.Errorf("%+v, %v", m, err)
	}

	// as if the sums had been made for it
	write(t, filepath.Join(dir, release.SignatureName), make([]byte, ed25519.SignatureSize))
	do("sums", dir)
	do("sign", "-key", private, dir)

	if err := run([]string{"verify", "-key", public, dir}, new(bytes.Buffer)); err == nil {
		t.Error("a manifest that is not signed was verified")
	}

	for _, args := range [][]string{{"manifest", "-version", "1.2.3", t.TempDir()},
		{"manifest", "-version", "1.2.3", "-days", "0", dir}, {"signmanifest", "-key", public, dir}} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q did something", args)
		}
	}
}
