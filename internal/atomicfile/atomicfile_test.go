//go:build unix

package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, text := range []string{"one", "two"} {
		if err := atomicfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text || atomicfile.Check(path) != nil {
			t.Fatalf("%q, %v, %v", b, err, atomicfile.Check(path))
		}
	}

	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "folder"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v is left, %v", all, err)
	}
}

// TestCreate: of many callers at once one creates the file, and the file is complete.
func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var made, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			switch err := atomicfile.Create(path, []byte(strings.Repeat(string(rune('a'+i)), 1000))); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, fs.ErrExist):
				refused.Add(1)
			}
		})
	}

	wg.Wait()
	b, err := os.ReadFile(path)
	if err != nil || made.Load() != 1 || refused.Load() != 19 || len(b) != 1000 ||
		strings.Count(string(b), string(b[:1])) != 1000 {
		t.Errorf("%d made it, %d were refused, %d bytes, %v", made.Load(), refused.Load(), len(b), err)
	}

	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v is left, %v", all, err)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}

	no := errors.New("no")
	if err := atomicfile.Replace(path, func() ([]byte, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}

	inner := atomicfile.Replace(path, func() ([]byte, error) {
		if err := atomicfile.Replace(path, func() ([]byte, error) { return []byte("lost"), nil }); err == nil {
			t.Error("two at once")
		}
		return []byte("new"), nil
	})

	if b, err := os.ReadFile(path); inner != nil || err != nil || string(b) != "new" {
		t.Errorf("%q, %v, %v", b, inner, err)
	}
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := atomicfile.Check(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Check(path); err == nil ||
		!strings.Contains(err.Error(), "can be read by others (mode 0640)") {
		t.Errorf("%v", err)
	}

	if os.Geteuid() != 0 {
		t.Skip("the rest needs root")
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Check(path); err == nil || !strings.Contains(err.Error(), "belongs to uid 65534") {
		t.Errorf("%v", err)
	}
}
