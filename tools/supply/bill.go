package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// bill is a bill of materials in the words of CycloneDX 1.6. It has no time and no random number: the same binary
// has the same bill.
type bill struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Serial     string      `json:"serialNumber"`
	Revision   int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licences   []licence  `json:"licenses,omitempty"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licence struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// printBill writes the bill of a binary: what the linker recorded in it, with the licences of the modules in the cache.
// A version that was given to the linker is not in what it records of -trimpath, so it comes from the caller.
func printBill(out io.Writer, version, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read what %s is built from: %w", path, err)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	system, arch := setting(info, "GOOS"), setting(info, "GOARCH")
	sources, err := modules([]string{system + "/" + arch}, info.Path)
	if err != nil {
		return err
	}
	if version != "" {
		info.Main.Version = version
	}

	b, err := makeBill(info, sha256.Sum256(text), sources)
	if err != nil {
		return err
	}

	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func makeBill(info *debug.BuildInfo, digest [32]byte, sources []*module) (*bill, error) {
	byPath := map[string]*module{}
	for _, m := range sources {
		byPath[m.Path] = m
	}

	app := component{Type: "application", Name: info.Main.Path, Version: info.Main.Version,
		Licences: named([]string{"Apache-2.0"}),
		Hashes:   []hash{{"SHA-256", hex.EncodeToString(digest[:])}}}
	app.URL = packageURL(app.Name, app.Version)
	app.Ref = app.URL
	for _, key := range []string{"GOOS", "GOARCH", "CGO_ENABLED", "-trimpath"} {
		if v := setting(info, key); v != "" {
			app.Properties = append(app.Properties, property{"go:build:" + key, v})
		}
	}

	deps := []*debug.Module{{Path: "std", Version: info.GoVersion}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		deps = append(deps, d)
	}

	b := &bill{Format: "CycloneDX", Version: "1.6", Serial: serial(digest), Revision: 1, Metadata: metadata{app}}
	for _, d := range deps {
		m := byPath[d.Path]
		if m == nil || m.Version != d.Version {
			return nil, fmt.Errorf("%s %s is in the binary, but not in the sources here", d.Path, d.Version)
		}
		ids, err := m.licences()
		if err != nil {
			return nil, err
		}
		c := component{Type: "library", Name: d.Path, Version: d.Version, Licences: named(ids),
			URL: packageURL(d.Path, d.Version)}
		c.Ref = c.URL
		if d.Sum != "" {
			c.Properties = []property{{"go:sum", d.Sum}}
		}
		b.Components = append(b.Components, c)
	}

	return b, nil
}

func named(ids []string) []licence {
	all := make([]licence, len(ids))
	for i, id := range ids {
		all[i].License.ID = id
	}
	return all
}

// packageURL is the name of a module as lists of advisories write it, so that the two can be compared.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(strings.TrimPrefix(version, "go"), "+", "%2B")
}

// serial makes a UUID of version 8 from the digest of the binary.
func serial(digest [32]byte) string {
	u := digest[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
