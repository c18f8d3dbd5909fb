package enrol

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// keyFiles are the files of authorities in a folder.
func keyFiles(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "ca*.key"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// keeps makes an authority that follows the present one, and stores it.
func (a *Authority) keeps(t *testing.T) (pin string, file []byte, certificate string) {
	t.Helper()
	file, certificate, err := a.MakeNext()
	if err != nil {
		t.Fatal(err)
	}
	if pin, err = CertificatePin(certificate); err != nil {
		t.Fatal(err)
	}
	if err := a.Keep(pin, file); err != nil {
		t.Fatal(err)
	}
	return pin, file, certificate
}

// TestKeptAuthorities: an authority that was kept is used when it counts, and after a restart. Others are deleted, and what is not
// the authority that it should be is not kept.
func TestKeptAuthorities(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAuthority(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost, _, _ := a.keeps(t)
	pin, file, next := a.keeps(t)
	if !a.Has(pin) || !a.Has(a.Pin()) || a.Has("none") || a.Newest() != a.Pin() {
		t.Error("what the server has is wrong")
	}

	// What is not kept, used or given.
	other := t.TempDir()
	stranger, err := OpenAuthority(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign, _, err := stranger.MakeNext()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"another one": foreign, "no key": []byte(next), "damaged": file[:len(file)-40], "empty": nil} {
		if err := stranger.Keep(pin, text); err == nil {
			t.Errorf("%s is kept", what)
		}
	}
	if err := stranger.Use(pin); !errors.Is(err, ErrNotKept) {
		t.Errorf("use of one that was not kept: %v", err)
	}
	if _, err := a.FileOf(pin); !errors.Is(err, ErrNotKept) {
		t.Errorf("one that does not count is given: %v", err)
	}
	if len(keyFiles(t, other)) != 1 {
		t.Errorf("files %v", keyFiles(t, other))
	}

	// It counts, also after a restart, and the other one is worth nothing.
	if err := a.Forget(); err != nil || len(keyFiles(t, dir)) != 3 {
		t.Errorf("%v; files %v", err, keyFiles(t, dir))
	}
	if err := errors.Join(a.Use(pin), a.Use(pin), a.Forget()); err != nil {
		t.Fatal(err)
	}
	if a, err = OpenAuthority(dir, nil); err != nil {
		t.Fatal(err)
	}
	current, got := a.Certificates()
	if got != next || a.Newest() != pin || a.Has(lost) || len(keyFiles(t, dir)) != 2 {
		t.Errorf("newest %s, files %v", a.Newest(), keyFiles(t, dir))
	}
	if given, err := a.FileOf(pin); err != nil || !slices.Equal(given, file) {
		t.Errorf("the file of the next one: %v", err)
	}
	if newer, err := FollowsAuthority(next, current); err != nil || !newer {
		t.Errorf("the next one is not newer: %v", err)
	}
	if newer, err := FollowsAuthority(current, next); err != nil || newer {
		t.Errorf("the present one is newer: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, CertificateFile)); err != nil || string(b) != current+next {
		t.Errorf("the certificates that people hand out: %v: %s", err, b)
	}
}
