package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
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
	all, err := listMigrations(words)
	if err != nil {
		return fmt.Errorf("cannot list the migrations: %w", err)
	}

	opts = append(opts,
		goose.WithTableName(versionTable),
		goose.WithLogger(goose.NopLogger()),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(append(all, auditMigration(words))...))
	p, err := goose.NewProvider(dialect, db, nil, opts...)
	if err != nil {
		return fmt.Errorf("cannot read the migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("cannot bring the schema up to date: %w", err)
	}

	return nil
}

// listMigrations lists the migrations, one for each file. Goose can read the files, too, but takes a buffer of 4 MiB for each line
// of them: that was most of the work of a first start under the race detector.
func listMigrations(words *strings.Replacer) (all []*goose.Migration, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}

	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		run := func(ctx context.Context, tx *sql.Tx) error { return runMigration(ctx, tx, name, words) }
		all = append(all, goose.NewGoMigration(version, &goose.GoFunc{RunTx: run}, nil))
	}

	return all, nil
}

func runMigration(ctx context.Context, tx *sql.Tx, name string, words *strings.Replacer) error {
	b, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	list, err := splitSQL(words.Replace(string(b)))
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(name), err)
	}

	for _, statement := range list {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w: %s", path.Base(name), err, statement)
		}
	}

	return nil
}

// upMark is the line after which the statements of a migration begin. It is goose's word, and the only one that is used here.
const upMark = "-- +goose Up"

// splitSQL splits a migration into its statements. One ends with the line whose last word ends with a semicolon. Comments
// inside a statement stay, because SQLite keeps the text of a table.
func splitSQL(text string) (list []string, err error) {
	_, text, found := strings.Cut(text, upMark+"\n")
	if !found {
		return nil, fmt.Errorf("the line %q is missing", upMark)
	}

	var statement strings.Builder
	for line := range strings.Lines(text) {
		code, comment, _ := strings.Cut(line, "--")
		if strings.Contains(comment, "+goose") {
			return nil, fmt.Errorf("the line %q is not known", strings.TrimSpace(line))
		}
		code = strings.TrimSpace(code)
		if statement.Len() == 0 && code == "" {
			continue
		}
		statement.WriteString(line)
		if strings.HasSuffix(code, ";") {
			list = append(list, strings.TrimSpace(statement.String()))
			statement.Reset()
		}
	}

	if statement.Len() > 0 {
		return nil, fmt.Errorf("a semicolon is missing after %q", strings.TrimSpace(statement.String()))
	}
	return list, nil
}
