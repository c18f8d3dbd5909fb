package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/internal/host"
)

func TestAccountsAreReadAgainWhenTheirFilesChange(t *testing.T) {
	dir := t.TempDir()
	files := [2]string{filepath.Join(dir, "passwd"), filepath.Join(dir, "group")}

	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	uid, finds, unknown := uint32(7), 0, errors.New("unknown")
	lookup := host.Accounts(files, func(name string) (uint32, error) {
		finds++
		if name == "nobody else" {
			return 0, unknown
		}
		return uid, nil
	})

	want := func(what string, wantFinds int) {
		t.Helper()
		finds = 0
		for range 3 {
			if got, err := lookup("svc"); err != nil || got != uid {
				t.Errorf("%s: uid %d, %v; want %d", what, got, err, uid)
			}
		}
		if finds != wantFinds {
			t.Errorf("%s: %d look-ups, want %d", what, finds, wantFinds)
		}
	}

	want("without files nothing is remembered", 3)
	write(files[0], "a")
	write(files[1], "b")
	want("first", 1)
	want("again", 0)
	uid = 8
	write(files[0], "aa")
	want("another user file", 1)
	uid = 9
	write(files[1], "bb")
	want("another group file", 1)
	uid = 10
	next := filepath.Join(dir, "next")
	write(next, "cc")

	if err := os.Rename(next, files[0]); err != nil {
		t.Fatal(err)
	}

	want("a file in its place", 1)
	finds = 0

	for range 2 {
		if _, err := lookup("nobody else"); !errors.Is(err, unknown) {
			t.Error(err)
		}
	}

	if finds != 2 {
		t.Error("an unknown user is remembered")
	}
}
