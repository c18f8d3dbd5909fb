package kept_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/kept"
)

func view(content string) gozzard.FileView {
	return gozzard.FileView{Exists: true, Owner: "shop", Group: "www", Mode: "0640", SHA256: gozzard.FileDigest([]byte(content)),
		Content: []byte(content)}
}

func open(t *testing.T, o kept.Options) *kept.Store {
	t.Helper()
	s, err := kept.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keep(t *testing.T, s *kept.Store, path, content string) {
	t.Helper()
	if err := s.Keep(path, view(content), 7); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, s *kept.Store, path string) (list []string) {
	t.Helper()
	all, err := s.Versions(path, "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		got, err := s.Kept(path, "shop", v.SHA256)
		if err != nil || got.Mode != v.Mode || got.Size != v.Size {
			t.Fatalf("%+v %v", got, err)
		}
		list = append(list, string(got.Content))
	}
	return list
}

// TestKept: what was kept is there after a restart, the newest first, for its owner only.
func TestKept(t *testing.T) {
	o := kept.Options{Dir: t.TempDir()}
	s := open(t, o)
	keep(t, s, "/x", "one\nline")
	keep(t, s, "/x", "")
	keep(t, s, "/y", "other")
	s = open(t, o)
	if got := fmt.Sprint(contents(t, s, "/x")); got != "[ one\nline]" {
		t.Errorf("%q", got)
	}

	digest := gozzard.FileDigest([]byte("other"))
	if _, err := s.Kept("/x", "shop", digest); !errors.Is(err, kept.ErrMissing) {
		t.Errorf("the content of another file: %v", err)
	}
	if _, err := s.Kept("/y", "root", digest); !errors.Is(err, kept.ErrMissing) {
		t.Errorf("the content of another owner: %v", err)
	}
	if list, err := s.Versions("/y", "root"); err != nil || len(list) != 0 {
		t.Errorf("the contents of another owner: %v %v", list, err)
	}
}

// TestKeptIsBounded: number, age and bytes are bounded, and the newest content of a file stays.
func TestKeptIsBounded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	o := kept.Options{Dir: t.TempDir(), Versions: 3, Age: time.Hour, Bytes: 4096, Now: func() time.Time { return now }}
	s := open(t, o)
	for i := range 5 {
		keep(t, s, "/x", fmt.Sprint(i))
	}
	if got := fmt.Sprint(contents(t, s, "/x")); got != "[4 3 2]" {
		t.Errorf("number: %s", got)
	}

	now = now.Add(2 * time.Hour)
	s = open(t, o)
	if got := fmt.Sprint(contents(t, s, "/x")); got != "[4]" {
		t.Errorf("age: %s", got)
	}

	big := string(make([]byte, 1800))
	for i := range 3 {
		keep(t, s, "/y", big+fmt.Sprint(i))
		keep(t, s, "/z", big+fmt.Sprint(i))
	}
	if y, z := contents(t, s, "/y"), contents(t, s, "/z"); len(y) != 1 || len(z) != 1 || y[0] != big+"2" || z[0] != big+"2" {
		t.Errorf("bytes: %d and %d are kept", len(y), len(z))
	}
}

// TestDamagedContentIsLeftOut: a content that was changed on the disk is not given out.
func TestDamagedContentIsLeftOut(t *testing.T) {
	o := kept.Options{Dir: t.TempDir()}
	s := open(t, o)
	keep(t, s, "/x", "good")
	all, err := filepath.Glob(o.Dir + "/files/*/*")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	b, err := os.ReadFile(all[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(all[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Kept("/x", "shop", gozzard.FileDigest([]byte("good"))); !errors.Is(err, kept.ErrMissing) {
		t.Errorf("%v", err)
	}
}
