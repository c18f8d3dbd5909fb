package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gozzard/gozzard/internal/sqlstore"
)

// NewSQLite puts an empty database of the newest schema at a path at which there is none yet. Under the race detector the
// migrations take some tenths of a second, so they run once in a test program and the others get a copy.
func NewSQLite(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}

	files, err := emptySQLite()
	if err != nil {
		t.Fatal(err)
	}
	for suffix, content := range files {
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// emptySQLite has the files of an empty database by what they add to its name.
var emptySQLite = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "gozzard-empty")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "r.db")
	var fatal error
	store, err := sqlstore.OpenSQLite(context.Background(), path, sqlstore.Options{Fatal: func(err error) { fatal = err }})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.Close(), fatal); err != nil {
		return nil, err
	}

	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		suffix := strings.TrimPrefix(e.Name(), "r.db")
		if suffix == ".lock" || suffix == ".reserve" { // of the program that has it open
			continue
		}
		if files[suffix], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}

	return files, nil
})
