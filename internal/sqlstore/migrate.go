package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versionTable is the table in which goose, the migration library, records the applied migrations.
const versionTable = "schema_version"

// schema is the newest version of the schema that this program knows.
func schema() (int64, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("cannot list the migrations: %w", err)
	}
	number, _, _ := strings.Cut(path.Base(names[len(names)-1]), "_")
	newest, err := strconv.ParseInt(number, 10, 64)
	return max(newest, auditVersion), err
}

// schemaVersions are the version of the schema of a database, and the newest one that this program knows.
func schemaVersions(ctx context.Context, db *sql.DB) (have, known int64, err error) {
	known, err = schema()
	if err != nil {
		return 0, 0, err
	}
	var newest sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM `+versionTable+` WHERE is_applied`).Scan(&newest)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the schema version: %w", err)
	}
	return newest.Int64, known, nil
}

// checkVersion rejects a database that a newer program has written. It changes nothing.
func checkVersion(ctx context.Context, db *sql.DB) error {
	have, known, err := schemaVersions(ctx, db)
	if err == nil && have > known {
		err = fmt.Errorf("the database has schema version %d, this program knows only %d: "+
			"use a newer version of gozzard; nothing was changed", have, known)
	}
	return err
}

// fits reports whether a newer program has written a database and says that this one can use it: servers are upgraded one after
// the other, and an older one may have to start again in between.
func fits(ctx context.Context, db *sql.DB) (bool, error) {
	have, known, err := schemaVersions(ctx, db)
	if err != nil || have <= known {
		return false, err
	}
	var at, from sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT (SELECT value FROM counters WHERE name = 'compatible_at'),
		(SELECT value FROM counters WHERE name = 'compatible_from')`).Scan(&at, &from)
	if err != nil {
		return false, fmt.Errorf("cannot read which programs can use the database: %w", err)
	}
	return at.Valid && at.Int64 == have && from.Valid && from.Int64 <= known, nil
}

// migrate brings the schema to the newest version, each migration in a transaction. The migrations are written for
// SQLite; words replaces the words that another database does not know.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, words *strings.Replacer,
	opts ...goose.ProviderOption) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}

	opts = append(opts,
		goose.WithTableName(versionTable),
		goose.WithLogger(goose.NopLogger()),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(auditMigration(words)))
	p, err := goose.NewProvider(dialect, db, wordsFS{fs: dir, words: words}, opts...)
	if err != nil {
		return fmt.Errorf("cannot read the migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("cannot bring the schema up to date: %w", err)
	}

	return nil
}

// wordsFS is a file system with some words of its .sql files replaced.
type wordsFS struct {
	fs    fs.FS
	words *strings.Replacer
}

func (w wordsFS) Open(name string) (fs.File, error) {
	f, err := w.fs.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &wordsFile{File: f, Reader: bytes.NewReader([]byte(w.words.Replace(string(b))))}, nil
}

type wordsFile struct {
	fs.File
	*bytes.Reader
}

func (f *wordsFile) Read(p []byte) (int, error) { return f.Reader.Read(p) }
