package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// TestTT5FilePaths: a path that could lead elsewhere than it says is no path of a file.
func TestTT5FilePaths(t *testing.T) {
	for _, p := range []string{"", "/", "etc/x", "/etc/../x", "/etc/./x", "/etc//x", "/etc/x/", "/..", "./x", "/etc/x\x00y",
		"/etc/x\ny", "/etc/\u202ex", "/etc/\xff", "/" + strings.Repeat("x", gozzard.MaxPathBytes)} {
		if err := gozzard.ValidateFilePath(p); err == nil {
			t.Errorf("%q is accepted", p)
		}
	}
	for _, p := range []string{"/x", "/etc/x.conf", "/etc/网关/x y.conf", "/etc/..x", "/etc/x\\y", "/a/*"} {
		if err := gozzard.ValidateFilePath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// TestFileKeys: every path has a name of its own that all parts accept.
func TestFileKeys(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"/x", "/etc/x.conf", "/etc/x\\y", "/etc/x\"y", "/" + strings.Repeat("x", 250),
		"/" + strings.Repeat("x", 251) + "y"} {
		k := gozzard.FileKey("shop", p)
		if err := gozzard.ValidateProcessName(k.Name); err != nil || seen[k.Name] != "" {
			t.Errorf("%q: %q %v, also of %q", p, k.Name, err, seen[k.Name])
		}
		seen[k.Name] = p
	}
}

func TestFileSpec(t *testing.T) {
	content := []byte("a = 1\n")
	good := func() gozzard.FileSpec {
		return gozzard.FileSpec{Path: "/etc/x", Mode: "0640", SHA256: gozzard.FileDigest(content), Size: int64(len(content)),
			Content: content}
	}
	if f := good(); f.Validate() != nil {
		t.Fatal(f.Validate())
	}

	for name, change := range map[string]func(f *gozzard.FileSpec){
		"path":          func(f *gozzard.FileSpec) { f.Path = "/etc/../x" },
		"set-uid":       func(f *gozzard.FileSpec) { f.Mode = "4755" },
		"mode":          func(f *gozzard.FileSpec) { f.Mode = "rw-r--r--" },
		"no mode":       func(f *gozzard.FileSpec) { f.Mode = "" },
		"group":         func(f *gozzard.FileSpec) { f.Group = "a:b" },
		"digest":        func(f *gozzard.FileSpec) { f.SHA256 = strings.ToUpper(f.SHA256) },
		"other content": func(f *gozzard.FileSpec) { f.Content = []byte("a = 2\n") },
		"no content":    func(f *gozzard.FileSpec) { f.Content = nil },
		"size":          func(f *gozzard.FileSpec) { f.Size++ },
		"kept and more": func(f *gozzard.FileSpec) { f.Kept = true },
		"expect":        func(f *gozzard.FileSpec) { f.Expect = "nothing" },
	} {
		f := good()
		if change(&f); f.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}

	empty := gozzard.FileSpec{Path: "/x", Mode: "644", SHA256: gozzard.FileDigest(nil), Expect: gozzard.FileAbsent}
	if err := empty.Validate(); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestLineEnds(t *testing.T) {
	const mixed = "a\r\nb\nc\r"
	for ends, want := range map[gozzard.LineEnds]string{"": mixed, "lf": "a\nb\nc\r", "crlf": "a\r\nb\r\nc\r"} {
		if got, err := ends.Apply([]byte(mixed)); err != nil || string(got) != want {
			t.Errorf("%q: %q %v", ends, got, err)
		}
	}
	if _, err := gozzard.LineEnds("cr").Apply(nil); err == nil {
		t.Error("cr is accepted")
	}
}
