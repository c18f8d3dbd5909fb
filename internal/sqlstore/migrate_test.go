package sqlstore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestSplitSQL: a migration is run statement by statement, with the comments inside of them, and one that is not understood is
// refused.
func TestSplitSQL(t *testing.T) {
	const head = "-- The first; of all.\n-- +goose Up\n\n-- About t;\n"
	for _, c := range []struct {
		name, text string
		want       []string
		refused    string
	}{
		{"two", head + "CREATE TABLE t (\n    a TEXT, -- one; two\n\n    b TEXT\n);\nDROP TABLE t; -- gone\n",
			[]string{"CREATE TABLE t (\n    a TEXT, -- one; two\n\n    b TEXT\n);", "DROP TABLE t; -- gone"}, ""},
		{"no line at the end", head + "DROP TABLE t;", []string{"DROP TABLE t;"}, ""},
		{"a semicolon in a text", head + "INSERT INTO t VALUES (';',\n 'b');\n", []string{"INSERT INTO t VALUES (';',\n 'b');"}, ""},
		{"nothing", head, nil, ""},
		{"no begin", "DROP TABLE t;\n", nil, "is missing"},
		{"no end", head + "DROP TABLE t\n", nil, "semicolon is missing"},
		{"a way back", head + "DROP TABLE t;\n-- +goose Down\nCREATE TABLE t (a TEXT);\n", nil, "-- +goose Down"},
		{"without a transaction", head + "-- +goose NO TRANSACTION\nDROP TABLE t;\n", nil, "NO TRANSACTION"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := sqlstore.SplitSQL(c.text)
			if c.refused == "" && (err != nil || !slices.Equal(got, c.want)) {
				t.Errorf("statements %q, %v", got, err)
			}
			if c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("statements %q, %v: it must be refused", got, err)
			}
		})
	}
}
