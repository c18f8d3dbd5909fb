package release_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/test/fuzztest"
)

// The versions in the order of semantic versioning, with the examples of its specification.
var ordered = []string{
	"0.0.1", "0.9.10", "0.10.0", "1.0.0-0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta",
	"1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "v1.0.0", "1.0.1",
	"v1.2.3-4-gabcdef", "1.2.3+build.7", "2.0.0", "10.0.0", "99999999999999999999.0.0",
}

func TestVersionOrder(t *testing.T) {
	for i, a := range ordered {
		for j, b := range ordered {
			v, w := parsed(t, a), parsed(t, b)
			if got, want := v.Compare(w), i-j; got < 0 != (want < 0) || got > 0 != (want > 0) {
				t.Errorf("%s to %s: %d", a, b, got)
			}
		}
	}

	if parsed(t, "v1.0.0+a").Compare(parsed(t, "1.0.0+b")) != 0 {
		t.Error("what follows + counts")
	}

	for _, bad := range []string{"", "dev", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.-3", "1.2.3-", "1.2.3-01", "1.2.3+",
		"1.2.3-a..b", "1.2.3-ä", "vv1.2.3", "1.2.3 ", "1.2.3\n",
		"1.2.3-" + strings.Repeat("a", 80), "../../1.2.3"} {
		if v, err := release.ParseVersion(bad); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
}

func parsed(t *testing.T, s string) release.Version {
	t.Helper()
	v, err := release.ParseVersion(s)
	if err != nil || v.String() != s {
		t.Fatalf("%q, %v", v, err)
	}
	return v
}

var now = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func sample(program []byte) *release.Manifest {
	sum := sha256.Sum256(program)
	return &release.Manifest{Version: "1.2.3", Created: now, Expires: now.AddDate(1, 0, 0), Files: []release.File{
		{Platform: "linux/amd64", Name: "gozzard-linux-amd64", Size: int64(len(program)),
			SHA256: hex.EncodeToString(sum[:])},
	}}
}

// TestTE8EveryBitOfAManifest: with one changed bit in the manifest or signature, or another key, nothing is accepted.
func TestTE8EveryBitOfAManifest(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	text, err := sample([]byte("program")).Encode()
	if err != nil {
		t.Fatal(err)
	}

	sig := ed25519.Sign(private, text)
	if m, err := release.Verify(public, text, sig); err != nil || m.Version != "1.2.3" {
		t.Fatal(m, err)
	}

	for _, b := range [][]byte{text, sig} {
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			if _, err := release.Verify(public, text, sig); err == nil {
				t.Fatalf("bit %d may be another", i)
			}
			b[i/8] ^= 1 << (i % 8)
		}
	}

	other, _, _ := ed25519.GenerateKey(rand.Reader)
	for what, f := range map[string]func() (*release.Manifest, error){
		"another key":   func() (*release.Manifest, error) { return release.Verify(other, text, sig) },
		"no key":        func() (*release.Manifest, error) { return release.Verify(nil, text, sig) },
		"no signature":  func() (*release.Manifest, error) { return release.Verify(public, text, nil) },
		"cut signature": func() (*release.Manifest, error) { return release.Verify(public, text, sig[:63]) },
		"what else the key signs": func() (*release.Manifest, error) {
			sums := []byte("00  gozzard\n")
			return release.Verify(public, sums, ed25519.Sign(private, sums))
		},
	} {
		if m, err := f(); err == nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
}

func TestManifestsThatMakeNoSense(t *testing.T) {
	for what, change := range map[string]func(*release.Manifest){
		"no version":  func(m *release.Manifest) { m.Version = "dev" },
		"no end":      func(m *release.Manifest) { m.Expires = time.Time{} },
		"no files":    func(m *release.Manifest) { m.Files = nil },
		"twice":       func(m *release.Manifest) { m.Files = append(m.Files, m.Files[0]) },
		"a path":      func(m *release.Manifest) { m.Files[0].Name = "../gozzard" },
		"its own":     func(m *release.Manifest) { m.Files[0].Name = release.ManifestName },
		"no platform": func(m *release.Manifest) { m.Files[0].Platform = "linux" },
		"too long":    func(m *release.Manifest) { m.Files[0].Size = release.MaxFile + 1 },
		"empty":       func(m *release.Manifest) { m.Files[0].Size = 0 },
		"no sum":      func(m *release.Manifest) { m.Files[0].SHA256 = "00" },
	} {
		m := sample([]byte("program"))
		change(m)
		if b, err := m.Encode(); err == nil {
			t.Errorf("%s: %s", what, b)
		}
	}
}

func TestTE8Admit(t *testing.T) {
	m := sample([]byte("program"))
	for _, tt := range []struct {
		now              time.Time
		running, highest string
		downgrade        bool
		want             string
	}{
		{now, "1.2.2", "", false, ""},
		{now, "1.2.2", "1.2.2", false, ""},
		{now, "1.2.3-rc.1", "", false, ""},
		{m.Expires, "1.2.2", "", false, "expired"},
		{m.Expires, "1.2.2", "", true, "expired"},
		{now, "1.2.3", "", false, "is already running"},
		{now, "1.2.3", "", true, "is already running"},
		{now, "1.2.3+x", "", false, "not newer than 1.2.3+x, which runs"},
		{now, "1.3.0", "", false, "not newer than 1.3.0, which runs"},
		{now, "1.2.2", "1.3.0", false, "not newer than 1.3.0, which ran here before"},
		{now, "1.3.0", "1.4.0", true, ""},
		{now, "dev", "", false, "cannot decide"},
		{now, "dev", "", true, ""},
	} {
		err := m.Admit(tt.now, tt.running, tt.highest, tt.downgrade)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestTE8CopyIsExact(t *testing.T) {
	program := []byte("a program")
	f := sample(program).Files[0]
	var out bytes.Buffer
	if err := f.Copy(&out, bytes.NewReader(program)); err != nil || out.String() != string(program) {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"truncated": "a progra", "longer": "a programm", "another": "A program"} {
		if err := f.Copy(new(bytes.Buffer), strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzParse: every accepted manifest can be encoded and parsed again, and has no file name that leads elsewhere.
func FuzzParse(f *testing.F) {
	z := fuzztest.New(f)
	text, err := sample([]byte("program")).Encode()
	if err != nil {
		f.Fatal(err)
	}

	z.Add(text)
	z.Add([]byte(`{"gozzard_release":1,"version":"v0.1.0-rc.1+x","created":"2026-01-01T00:00:00Z","expires":"2027-01-01T00:00:00+08:00","later":{},"files":[]}`))

	z.Fuzz(func(t *testing.T, in []byte) {
		m, err := release.Parse(in)
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if err != nil {
			return
		}

		for _, file := range m.Files {
			if strings.ContainsAny(file.Name, `/\`) || strings.HasPrefix(file.Name, ".") {
				t.Fatalf("%q", file.Name)
			}
		}

		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}

		again, err := release.Parse(b)
		if err != nil || !reflect.DeepEqual(again.Files, m.Files) || !again.Expires.Equal(m.Expires) {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}
