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
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// checkpointPages is how much the write-ahead log takes before it is copied into the database: 8 MiB, as much as
// the reserve, so that on a full disk the copy finds room when the reserve is given up.
const checkpointPages = reserveBytes / 4096

// OpenSQLite opens the record at a path and makes it when it is missing. One process can have it at a time. A
// damaged database, one of a newer program and one of another program are refused and not touched.
func OpenSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}

	unlock, err := takeLock(path, o)
	if err != nil {
		return nil, err
	}

	s, err := openLocked(ctx, path, o, unlock)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}

	return s, nil
}

func openLocked(ctx context.Context, path string, o Options, unlock func() error) (*Store, error) {
	d := &dialect{
		begin: "BEGIN IMMEDIATE",
		// in order; the driver looks numbered ones up by name, which is slow for thousands
		place:    func(int) string { return "?" },
		sessions: selectSessions(""),
		numbers:  func(arg string) string { return "SELECT value FROM json_each(" + arg + ")" },
		words:    func(arg string) string { return "SELECT value FROM json_each(" + arg + ")" },
		// to watch a context the driver starts a goroutine for each statement, and these take microseconds
		reading:  context.WithoutCancel,
		classify: classifySQLite(path),
	}

	r := &room{o: o, path: path + ".reserve"}
	write, err := prepareSQLite(ctx, path)
	if err != nil && d.classify(err) == failFull {
		// opening needs some room too: for the shared memory file, and for a migration
		if err := r.full(ctx, nil); err != nil {
			return nil, err
		}
		write, err = prepareSQLite(ctx, path)
	}

	if err != nil {
		return nil, err
	}

	read, err := sql.Open("sqlite", dsn(path, "query_only(1)", "cache_size(-4000)"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}

	readers := max(4, runtime.GOMAXPROCS(0))
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)

	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}

	return newStore(o, d, read, write, &sqliteKeeper{room: r, classify: d.classify}, unlock), nil
}

// inspect looks at an existing database without changing a byte of it.
func inspect(ctx context.Context, path string) (err error) {
	st, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && st.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}

	mode := "?mode=ro"

	if st, err := os.Stat(path + "-wal"); err != nil || st.Size() == 0 {
		mode += "&immutable=1" // no log, so no shared memory file need be made to read it
	}

	db, err := sql.Open("sqlite", uri(path)+mode+"&_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil || found != "ok" {
		var e *sqlite.Error
		if err != nil && (!errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_NOTADB &&
			e.Code()&0xff != sqlite3.SQLITE_CORRUPT) {
			return fmt.Errorf("cannot check the database %s: %w", path, err)
		}
		if err == nil {
			err = errors.New(found)
		}
		return fmt.Errorf("the database %s is damaged and was not touched: restore it from a backup, or move it away to begin with an empty one (%w)", path, err)
	}

	var tables, ours int
	if err := db.QueryRowContext(ctx,
		`SELECT COUNT(*), COUNT(*) FILTER (WHERE name = $1) FROM sqlite_master WHERE type = 'table'`,
		versionTable).Scan(&tables, &ours); err != nil {
		return fmt.Errorf("cannot check the database %s: %w", path, err)
	}

	if ours == 0 {
		if tables > 0 {
			return fmt.Errorf("%s is the database of another program and was not touched", path)
		}
		return nil
	}

	if err := checkVersion(ctx, db); err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}

	return nil
}

// createPrivate makes the file before SQLite does, readable by its owner only: commands of callers are in it.
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

// prepareSQLite checks the database or makes it, opens the pool of the writer, which has one connection, and brings
// the schema up to date.
func prepareSQLite(ctx context.Context, path string) (*sql.DB, error) {
	if err := inspect(ctx, path); err != nil {
		return nil, err
	}
	if err := createPrivate(path); err != nil {
		return nil, fmt.Errorf("cannot make the database: %w", err)
	}

	db, err := sql.Open("sqlite", writerDSN(path))
	if err != nil {
		return nil, err
	}

	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)

	if err := migrate(ctx, db, goose.DialectSQLite3, strings.NewReplacer()); err != nil {
		return nil, fmt.Errorf("cannot open the database %s: %w", path, errors.Join(err, db.Close()))
	}

	return db, nil
}

func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… of Windows
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// dsn puts the settings of a connection into its name: each connection of a pool has its own. Automatic indexes are
// off because with them a change of a few hundred rows is planned as a walk through the whole table beside an index
// on the new values.
func dsn(path string, pragmas ...string) string {
	q := uri(path) + "?_dqs=0&_defensive=1&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=temp_store(MEMORY)&_pragma=automatic_index(0)"
	for _, p := range pragmas {
		q += "&_pragma=" + p
	}
	return q
}

// writerSync: a commit is on the disk when it returns.
const writerSync = "synchronous(FULL)"

// writerDSN is the name of the connection that writes.
func writerDSN(path string) string {
	return dsn(path, "journal_mode(WAL)", writerSync, "wal_autocheckpoint(0)", "cache_size(-16000)",
		"journal_size_limit(67108864)") + "&_auto_vacuum=incremental"
}

// classifySQLite tells errors apart by their result codes.
func classifySQLite(path string) func(error) failure {
	return func(err error) failure {
		var e *sqlite.Error
		if !errors.As(err, &e) {
			return failOther
		}

		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return failFull
		case sqlite3.SQLITE_IOERR:
			switch e.Code() { // a used-up quota, and a shared memory file that cannot grow, are reported as these
			case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP:
				if noRoomAt(path) {
					return failFull
				}
			}
			return failFatal
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return failFatal
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
			sqlite3.SQLITE_CANTOPEN,
			sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
			return failBroken
		}

		return failOther
	}
}

// noRoomAt finds out by trying whether the disk of the database takes 64 KiB.
func noRoomAt(path string) bool {
	f, err := os.OpenFile(path+".probe", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return isNoRoom(err)
	}
	_, err = f.Write(make([]byte, 64<<10))
	err = errors.Join(err, f.Close())
	return errors.Join(err, os.Remove(path+".probe")) != nil && isNoRoom(err)
}

// sqliteKeeper keeps the write-ahead log short, besides the room.
type sqliteKeeper struct {
	*room
	classify func(error) failure
	warned   time.Time
}

// committed copies the log into the database when it has become long. SQLite would do that by itself, but would not
// tell of a failed fsync.
func (k *sqliteKeeper) committed(ctx context.Context, c *sql.Conn) error {
	var pages int
	count := func(reset bool) error {
		return c.Raw(func(dc any) (err error) {
			pages, _, err = dc.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, reset)
			return err
		})
	}

	// when short, the log must not grow at all
	if err := count(false); err != nil || pages == 0 || pages < checkpointPages && !k.isShort {
		return err
	}

	left, err := checkpoint(ctx, c, "PASSIVE")
	if err != nil {
		return k.later(ctx, err)
	}
	if left > 16*checkpointPages && k.o.Now().Sub(k.warned) > time.Minute {
		k.warned = k.o.Now()
		k.o.Log.Warn("the write-ahead log of the record grows: a reader keeps it from being emptied", "pages", left)
	}

	return count(true)
}

// later takes the error of a checkpoint that may simply be tried again: on a full disk, or when something else has
// the database, the log keeps what was committed.
func (k *sqliteKeeper) later(ctx context.Context, err error) error {
	switch k.classify(err) {
	case failFull:
		return k.full(ctx, nil) // the next commit tries again, with the room of the reserve
	case failBroken:
		return nil
	}
	return fmt.Errorf("cannot empty the write-ahead log: %w", err)
}

func (k *sqliteKeeper) closing(ctx context.Context, c *sql.Conn) error {
	if _, err := checkpoint(ctx, c, "TRUNCATE"); err != nil {
		return k.later(ctx, err)
	}
	return nil
}

// checkpoint returns how many pages of the log are not yet in the database.
func checkpoint(ctx context.Context, c *sql.Conn, mode string) (left int, err error) {
	var busy, log, done int
	if err := c.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done); err != nil {
		return 0, err
	}
	return log - done, nil
}

// shrink gives free pages back to the disk, so that pruning can end a shortage of room by itself.
func shrink(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "PRAGMA incremental_vacuum(2048)"); err != nil {
		return err
	}
	_, err := checkpoint(ctx, c, "TRUNCATE")
	return err
}
