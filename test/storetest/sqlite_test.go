package storetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/storetest"
)

// TestNewSQLite: each copy is a database of its own that opens and is empty, and a database that is there stays.
func TestNewSQLite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.db", "b.db"} {
		path := filepath.Join(dir, name)
		storetest.NewSQLite(t, path)
		store, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{Fatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		if tasks, err := store.TasksOf(t.Context(), "", "", 0, 10); err != nil || len(tasks) != 0 {
			t.Errorf("%s: %v, %v", name, tasks, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}

	kept := filepath.Join(dir, "kept.db")
	if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.NewSQLite(t, kept)
	if b, err := os.ReadFile(kept); err != nil || string(b) != "mine" {
		t.Errorf("the database is now %.20q, %v", b, err)
	}
}
