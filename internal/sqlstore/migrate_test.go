package sqlstore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/sqlstore"
)

// onlyAdds are statements that change nothing for a program that does not know them.
var onlyAdds = regexp.MustCompile(`(?is)^(CREATE TABLE\b|CREATE INDEX\b|CREATE UNIQUE INDEX\b|INSERT INTO counters\b|` +
	`UPDATE counters SET value = \d+ WHERE name = 'compatible_at'$|ALTER TABLE \w+ ADD COLUMN .* DEFAULT\b)`)

// TestSchemaSaysWhatFits: every migration says which older programs can use the record after it, and those that say that nothing
// changes for them only add to the schema.
func TestSchemaSaysWhatFits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s, err := sqlstore.OpenSQLite(t.Context(), path, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at, from := counterOf(t, path, "compatible_at"), counterOf(t, path, "compatible_from")

	// Look at the migrations.
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) < 20 {
		t.Fatalf("migrations: %v, %v", files, err)
	}
	newest := 0
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		if newest, err = strconv.Atoi(number); err != nil {
			t.Fatal(err)
		}
		if newest <= from {
			continue
		}
		for _, text := range statements(t, file) {
			if !onlyAdds.MatchString(text) {
				t.Errorf("%s changes what older programs use: it must set compatible_from to %d, beside compatible_at: %s", file, newest, text)
			}
		}
	}
	if at != newest || from > at {
		t.Errorf("%s must set compatible_at to %d, see 00029: the record says %d, for programs from %d on", files[len(files)-1], newest, at, from)
	}
}

// counterOf reads a counter of a record.
func counterOf(t *testing.T, path, name string) (value int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT value FROM counters WHERE name = $1`, name).Scan(&value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// statements are the SQL statements of a migration.
func statements(t *testing.T, file string) (list []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^\s*--.*$`).ReplaceAllString(string(b), "")
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
