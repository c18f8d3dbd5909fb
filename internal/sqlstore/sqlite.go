package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// OpenSQLite opens the SQLite database at a path, and creates it when it is missing. One process can have it open at a
// time. OpenSQLite rejects a damaged database, one that a newer version of Gozzard has written and one of another
// program, and does not change them.
func OpenSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}

	lock, err := lockDatabase(path, o)
	if err != nil {
		return nil, err
	}

	s, err := openLocked(ctx, path, o, lock)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}

	return s, nil
}

// sqliteCode is the code of the outcome of an attempt a.
const sqliteCode = `CASE a.outcome WHEN '' THEN '' ELSE json_extract(a.outcome, '$.code') END`

// openLocked opens a database whose lock this process has.
func openLocked(ctx context.Context, path string, o Options, lock *databaseLock) (*Store, error) {
	d := &dialect{
		begin:  "BEGIN IMMEDIATE",
		tables: `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`,
		now:    "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
		// Placeholders by position: the driver looks numbered ones up by name, which is slow for thousands.
		bytes:       "BLOB", // SQLite takes BYTEA for a number
		looseInsert: "INSERT OR FAIL",
		placeholder: func(int) string { return "?" },
		sessions:    selectSessions(""),
		named:       "json_extract(choice, '$.templates')",
		jsonNumbers: func(arg string) string { return "SELECT value FROM json_each(" + arg + ")" },
		jsonTexts:   func(arg string) string { return "SELECT value FROM json_each(" + arg + ")" },
		verdicts:    selectVerdicts(sqliteCode), taskVerdicts: selectTaskVerdicts(sqliteCode),
		// To watch a context the driver starts a goroutine for each statement. Short reads take microseconds, so
		// that would cost more than the read.
		readContext: context.WithoutCancel,
		classify:    classifySQLite(path),
	}

	// Open the connection of the writer. That needs some disk space too, for the shared memory file and for a
	// migration.
	large := isLarge(path)
	r := &reserve{o: o, path: path + ".reserve"}
	write, sums, err := prepareSQLite(ctx, path, o)
	if err != nil && d.classify(err) == failFull {
		if err := r.diskFull(ctx, nil); err != nil {
			return nil, err
		}
		write, sums, err = prepareSQLite(ctx, path, o)
	}

	if err != nil {
		return nil, err
	}

	r.sums = sums

	// Open the connections of the readers.
	read, err := openReaders(ctx, path)
	if err != nil {
		return nil, errors.Join(err, write.Close(), sums.close())
	}

	// Hold disk space back for the moment when the disk is full, and remember the files.
	err = r.open(ctx)
	var files *presence
	if err == nil {
		files, err = newPresence(path, lock, o)
	}
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close(), sums.close())
	}

	m := &sqliteMaintenance{reserve: r, presence: files, classify: d.classify}
	s := newStore(o, d, read, write, m, func() error { return errors.Join(sums.close(), lock.release()) })
	s.sums, s.unchecked = sums, large
	return s, nil
}

// openReaders opens all connections of the readers. They stay open: SQLite makes a missing file when it opens a
// connection, and must not do that after the files were removed. As long as one is open, SQLite also keeps the
// write-ahead log, and does not copy it into the database by itself.
func openReaders(ctx context.Context, path string) (*sql.DB, error) {
	read, err := sql.Open("sqlite", dsn(path, "query_only(1)", "cache_size(-4000)"))
	if err != nil {
		return nil, err
	}

	readers := max(4, runtime.GOMAXPROCS(0))
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)

	var all []*sql.Conn
	var n int
	for range readers {
		c, connErr := read.Conn(ctx)
		if err = connErr; err == nil {
			all = append(all, c)
			err = c.QueryRowContext(ctx, `SELECT COUNT(*) FROM counters`).Scan(&n)
		}
		if err != nil {
			break
		}
	}

	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the database %s for reading: %w", path, err), read.Close())
	}
	return read, nil
}

// checkedAtOpen is the size of the largest database that is checked before it is opened. The check reads every page, and
// a fleet waits meanwhile; larger ones are checked beside the work, by CheckStructure.
const checkedAtOpen = 16 << 20

// isLarge reports whether a database is checked after it is opened.
func isLarge(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Size() > checkedAtOpen
}

// CheckStructure checks a large database, which was not checked when it was opened. fault is what is damaged; err is why
// the check could not run.
func (s *Store) CheckStructure(ctx context.Context) (fault, err error) {
	if !s.unchecked {
		return nil, nil
	}
	return structureFault(ctx, s.read.db)
}

// inspect checks an existing database without changing a byte of it: that it is intact if it is not large, that it is
// ours and that this program knows its schema. A file that is missing or empty passes.
func inspect(ctx context.Context, path string) (err error) {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && st.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}

	db, err := openReadOnly(path)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	if !isLarge(path) {
		if err := checkIntact(ctx, db, path); err != nil {
			return err
		}
	}

	// Reject a database of another program.
	var tables, ours int
	if err := db.QueryRowContext(ctx,
		`SELECT COUNT(*), COUNT(*) FILTER (WHERE name = $1) FROM sqlite_master WHERE type = 'table'`,
		versionTable).Scan(&tables, &ours); err != nil {
		return fmt.Errorf("cannot check the database %s: %w", path, err)
	}

	if ours == 0 {
		if tables > 0 {
			return fmt.Errorf("%s is the database of another program; it was not changed", path)
		}
		return nil
	}

	if err := checkVersion(ctx, db); err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}

	return nil
}

// openReadOnly opens a database for one look. Without a log, "immutable" saves SQLite from creating a shared memory
// file.
func openReadOnly(path string) (*sql.DB, error) {
	mode := "?mode=ro"
	if st, err := os.Stat(path + "-wal"); err != nil || st.Size() == 0 {
		mode += "&immutable=1"
	}

	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	db, err := sql.Open("sqlite", uri(path)+mode+"&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// checkIntact rejects a damaged database.
func checkIntact(ctx context.Context, db *sql.DB, path string) error {
	fault, err := structureFault(ctx, db)
	if err != nil {
		return fmt.Errorf("cannot check the database %s: %w", path, err)
	}
	if fault != nil {
		return fmt.Errorf("the database %s is damaged; it was not changed: restore it from a backup, "+
			"or move it away to start with an empty one (%w)", path, fault)
	}
	return nil
}

// structureFault runs SQLite's quick check. fault is what is damaged; err is why the check could not run.
func structureFault(ctx context.Context, db *sql.DB) (fault, err error) {
	var found string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	var e *sqlite.Error
	switch {
	case err == nil && found == "ok":
		return nil, nil
	case err == nil:
		return errors.New(found), nil
	case errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_NOTADB || e.Code()&0xff == sqlite3.SQLITE_CORRUPT):
		return err, nil
	}
	return nil, err
}

// createPrivate creates the database file before SQLite does, readable by its owner only: callers' commands are in it.
// SQLite gives its other files the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(path)))
}

// prepareSQLite checks or creates the database, opens the writer's pool of one connection, brings the schema up to date
// and opens the checksums of the pages.
func prepareSQLite(ctx context.Context, path string, o Options) (*sql.DB, *pageSums, error) {
	// Check the database, or create it.
	if err := checkWAL(path); err != nil {
		return nil, nil, err
	}
	if err := inspect(ctx, path); err != nil {
		return nil, nil, err
	}
	if err := createPrivate(path); err != nil {
		return nil, nil, fmt.Errorf("cannot create the database: %w", err)
	}
	if err := removeOldSums(path); err != nil {
		return nil, nil, fmt.Errorf("cannot remove the checksums of an earlier database: %w", err)
	}

	// Bring the schema up to date.
	db, err := sql.Open("sqlite", writerDSN(path))
	if err != nil {
		return nil, nil, err
	}

	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	err = migrate(ctx, db, goose.DialectSQLite3, strings.NewReplacer())

	// Open the checksums, also after a failure: closing the connection changes pages.
	sums := openSums(path, o.Log)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the database %s: %w", path, errors.Join(err, db.Close(), sums.close()))
	}
	return db, sums, nil
}

// uri is the file URI of a path. Unlike a plain path it may contain "?" and "#".
func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// dsn puts the settings of a connection into its name, because each connection of a pool must have them. Automatic
// indexes are off: with them SQLite plans a change of a few hundred rows as a walk through the whole table beside an
// index on the new values.
func dsn(path string, pragmas ...string) string {
	q := uri(path) + "?_dqs=0&_defensive=1&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)" +
		"&_pragma=temp_store(MEMORY)&_pragma=automatic_index(0)"
	for _, p := range pragmas {
		q += "&_pragma=" + p
	}
	return q
}

// writerSync is the setting with which a commit is on the disk when it returns.
const writerSync = "synchronous(FULL)"

// writerDSN is the name of the connection that writes. It has no automatic checkpoints: see afterCommit.
func writerDSN(path string) string {
	return dsn(path, "journal_mode(WAL)", writerSync, "wal_autocheckpoint(0)", "cache_size(-16000)",
		"journal_size_limit(67108864)") + "&_auto_vacuum=incremental"
}

// classifySQLite returns the classify of an SQLite database, which goes by SQLite's result codes.
func classifySQLite(path string) func(error) failure {
	return func(err error) failure {
		var e *sqlite.Error
		if !errors.As(err, &e) {
			return failStatement
		}

		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return failFull
		case sqlite3.SQLITE_IOERR:
			// SQLite reports a used-up quota, and a shared memory file that cannot grow, as these.
			switch e.Code() {
			case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP:
				if isDiskFullAt(path) {
					return failFull
				}
			}
			return failFatal
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return failFatal
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
			sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
			return failBroken
		}

		return failStatement
	}
}

// isDiskFullAt reports whether the disk of the database has less than 64 KiB of space. It tries to write them.
func isDiskFullAt(path string) bool {
	f, err := os.OpenFile(path+".probe", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return isDiskFull(err)
	}
	_, err = f.Write(make([]byte, 64<<10))
	err = errors.Join(err, f.Close())
	return errors.Join(err, os.Remove(path+".probe")) != nil && isDiskFull(err)
}
