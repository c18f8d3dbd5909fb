//go:build linux

package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// copyRecord copies the record of a server: by `gozzard backup`, or by pg_dump when it is in PostgreSQL. restore makes a data
// folder of a server with that record; the server before must have ended.
func copyRecord(t *testing.T, s *ft.Server) (restore func() (data string)) {
	t.Helper()
	if ft.InPostgres(t) {
		return dumpRecord(t, s)
	}
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "backup.age")
	recipient := strings.TrimSpace(mustRun(t, s, "backup", "keygen", "--to", key))
	mustRun(t, s, "backup", "create", "--data", s.Data, "--to", file, "--recipient", recipient)
	return func() string {
		data := filepath.Join(t.TempDir(), "restored")
		mustRun(t, s, "backup", "restore", file, "--identity", key, "--data", data)
		credentials, err := os.ReadFile(filepath.Join(s.Data, "credentials.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, "credentials.json"), credentials, 0o600); err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// dumpRecord copies a record in PostgreSQL. Its data folder stays.
func dumpRecord(t *testing.T, s *ft.Server) (restore func() (data string)) {
	t.Helper()
	pg, name := ft.DatabaseOf(t, s.Data)
	dump := filepath.Join(pg.Dir, name+".dump")
	pg.Tool("pg_dump", "--format=custom", "--file="+dump, name)
	return func() string {
		pg.Tool("pg_restore", "--clean", "--if-exists", "--create", "--exit-on-error", "--dbname=postgres", dump)
		mustRun(t, s, "record", "mark-restored", "--data", s.Data, "--record", pg.URL(name))
		return s.Data
	}
}
