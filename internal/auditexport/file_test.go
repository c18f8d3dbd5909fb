package auditexport_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auditexport"
)

func messages(from, to int) (list []auditexport.Message) {
	for i := from; i <= to; i++ {
		hash := gozzard.AuditHash{byte(i)}
		list = append(list, auditexport.Message{Seq: int64(i), Hash: hash,
			JSON: fmt.Appendf(nil, `{"seq":%d,"hash":"%s"}`, i, hash)})
	}
	return list
}

func lines(t *testing.T, paths ...string) (n int) {
	t.Helper()
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(b), "\n")
	}
	return n
}

func newFile(t *testing.T, path string, size int64) *auditexport.File {
	t.Helper()
	f, err := auditexport.NewFile(path, size, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestFileResumes: after a crash the file has half a line, and the position may be behind the file.
func TestFileResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := newFile(t, path, 0).Send(t.Context(), messages(1, 5)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(b, `{"seq":6,"ha`...), 0o600); err != nil {
		t.Fatal(err)
	}

	f := newFile(t, path, 0)
	if err := f.Send(t.Context(), messages(3, 8)); err != nil || lines(t, path) != 8 {
		t.Fatalf("%d lines, %v", lines(t, path), err)
	}

	// Another program moves the file away.
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := f.Send(t.Context(), messages(9, 10)); err != nil || lines(t, path) != 2 {
		t.Fatal(err)
	}

	// The record was replaced.
	other := messages(10, 11)
	other[0].Hash = gozzard.AuditHash{77}
	if err := newFile(t, path, 0).Send(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another hash") {
		t.Errorf("another history is appended: %v", err)
	}
}

func TestFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	f := newFile(t, path, 200)
	for i := 1; i <= 9; i += 3 {
		if err := f.Send(t.Context(), messages(i, i+2)); err != nil {
			t.Fatal(err)
		}
	}
	if n := lines(t, path+".2", path+".1"); n != 6 {
		t.Errorf("%d lines in the two files that are kept", n)
	}
}

// TestFileOfOthers: a file that has something else is not touched.
func TestFileOfOthers(t *testing.T) {
	for _, text := range []string{"root:x:0:0\n", "root:x", "{}\n", strings.Repeat("x", 2<<20)} {
		path := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := newFile(t, path, 0).Send(t.Context(), messages(1, 1)); err == nil {
			t.Errorf("%.20q was taken for an export", text)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%.20q was changed: %v", text, err)
		}
	}
}
