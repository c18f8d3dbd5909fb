package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/journal"
)

func TestRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acts.log")
	r, err := journal.OpenRing(path, 4096)
	if err != nil {
		t.Fatal(err)
	}

	for i := range 1000 {
		if err := r.Append(fmt.Appendf(nil, "line %d", i)); err != nil {
			t.Fatal(err)
		}
	}

	if err := r.Append(make([]byte, 4096)); err == nil {
		t.Fatal("a line that is longer than a half was taken")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	var all string
	for _, name := range []string{path + ".1", path} {
		st, err := os.Stat(name)
		if err != nil || st.Size() > 2048 || st.Mode().Perm()&0o077 != 0 {
			t.Fatalf("%s: %v, %v", name, st, err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}

	lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	for i, line := range lines { // the newest ones, without a gap
		if want := fmt.Sprintf("line %d", 1000-len(lines)+i); line != want {
			t.Fatalf("line %q, want %q", line, want)
		}
	}

	if len(lines) < 200 {
		t.Fatalf("%d lines are left", len(lines))
	}
}

func TestRingAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acts.log")
	if err := os.WriteFile(path, []byte("whole\ncut o"), 0o600); err != nil {
		t.Fatal(err)
	}

	r, err := journal.OpenRing(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append([]byte("next")); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole\ncut o\nnext\n" {
		t.Fatalf("%q, %v", b, err)
	}
}

// A20: a file that was deleted is made again with the next line.
func TestRingDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	r, err := journal.OpenRing(path, 1<<10)
	must(t, err)
	defer r.Close()
	must(t, r.Append([]byte("before")))
	must(t, os.Remove(path))
	must(t, r.Append([]byte("after")))
	if b, err := os.ReadFile(path); err != nil || string(b) != "after\n" {
		t.Errorf("%q, %v", b, err)
	}
}
