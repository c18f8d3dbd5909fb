package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Copy writes the SQLite database at a path into a new file, as it is at one moment. A server may be using the
// database; its writes are not blocked. Copy rejects a damaged database, so that backups of a sound one are kept. It
// must not be called in the process of the server: see Store.Copy.
func Copy(ctx context.Context, path, to string) (err error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	// Check the pages, if there are checksums of them.
	damaged, pages, err := checkFile(ctx, path)
	if err != nil && !errors.Is(err, ErrNoSums) {
		return fmt.Errorf("cannot check the pages of %s: %w", path, err)
	}
	if r := (record.PageCheck{Damaged: damaged, Pages: pages}); !r.Sound() {
		r.Tables = tablesOf(ctx, db, damaged)
		return errDamaged(path, &r)
	}

	return vacuumInto(ctx, db, to)
}

// Copy is the function Copy for a store that is open.
func (s *Store) Copy(ctx context.Context, path, to string) (err error) {
	r, err := s.CheckPages(ctx, func(int) {})
	if err != nil && !errors.Is(err, ErrNoSums) {
		return err
	}
	if !r.Sound() {
		return errDamaged(path, &r)
	}

	db, err := openToRead(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(vacuumInto(ctx, db, to), db.Close())
}

// errDamaged says that a record is not copied, and what to do.
func errDamaged(path string, r *record.PageCheck) error {
	return fmt.Errorf("the database %s is damaged and was not copied: %s; restore an older backup "+
		"(gozzard doctor shows the details)", path, r)
}

// vacuumInto writes a copy of an open database into a new file.
func vacuumInto(ctx context.Context, db *sql.DB, to string) error {
	if err := createPrivate(to); err != nil {
		return fmt.Errorf("cannot create %s: %w", to, err)
	}
	// VACUUM INTO an existing empty file keeps the mode of that file.
	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, to); err != nil {
		return fmt.Errorf("cannot copy the database to %s: %w", to, err)
	}

	return nil
}

// openToRead opens a database for reading. Other processes may have it open.
func openToRead(ctx context.Context, path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}
	if err := inspect(ctx, path); err != nil {
		return nil, err
	}

	db, err := sql.Open("sqlite", uri(path)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("cannot open the database: %w", err)
	}

	db.SetMaxOpenConns(1)
	return db, nil
}

// Look counts what is in the SQLite database at a path. It changes nothing. A server may be using the database.
func Look(ctx context.Context, path string) (v record.Survey, err error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return v, err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	// Check that the schema is ours: the queries below need it.
	if err := db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM `+versionTable+
		` WHERE is_applied`).Scan(&v.Schema); err != nil {
		return v, fmt.Errorf("cannot read the schema version of %s: %w", path, err)
	}

	known, err := schema()
	if err != nil {
		return v, err
	}
	if v.Schema < known {
		return v, fmt.Errorf("%s has schema version %d, but this program needs %d: "+
			"start the server to bring it up to date", path, v.Schema, known)
	}

	// Count.
	err = db.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM hosts), (SELECT COUNT(*)
		FROM processes), (SELECT COUNT(*) FROM tasks),
		(SELECT COUNT(*) FROM attempts WHERE state < 4), (SELECT COUNT(*) FROM apps), (SELECT COUNT(*)
		FROM users), (SELECT COUNT(*) FROM businesses),
		(SELECT COUNT(*) FROM audit), (SELECT value FROM counters WHERE name = 'restored'),
		(SELECT COALESCE(MAX(accepted_at), 0) FROM tasks)`).
		Scan(&v.Hosts, &v.Processes, &v.Tasks, &v.Open, &v.Apps, &v.Users, &v.Businesses, &v.AuditRows,
			(*stamp)(&v.Restored), (*stamp)(&v.LastTask))
	if err != nil {
		return v, fmt.Errorf("cannot count what is in %s: %w", path, err)
	}

	// Read the settings and the end of the audit.
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&v.Journal); err != nil {
		return v, fmt.Errorf("cannot read the settings of %s: %w", path, err)
	}
	if v.Audit, err = auditHead(ctx, db); err != nil {
		return v, fmt.Errorf("cannot read the head of the audit of %s: %w", path, err)
	}

	v.Members = map[string]int{}
	rows, err := db.QueryContext(ctx, `SELECT state, COUNT(*) FROM enrol_agents GROUP BY state`)
	return v, scanAll(rows, err, func(r *sql.Rows) error {
		var state string
		var n int
		err := r.Scan(&state, &n)
		v.Members[state] = n
		return err
	})
}

// Verify reads every page of the SQLite database at a path and follows the chain of its audit. The chain must end with
// head. Verify changes nothing.
func Verify(ctx context.Context, path string, head gozzard.AuditHead) (err error) {
	db, err := openToRead(ctx, path)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil || found != "ok" {
		return fmt.Errorf("the database is damaged: %w", errors.Join(err, notOK(found)))
	}

	audit, err := auditOf(ctx, db)
	if err != nil {
		return err
	}

	var check gozzard.AuditCheck
	for {
		rows, err := auditRows(ctx, audit, `WHERE seq > $1 ORDER BY seq LIMIT $2`, check.Head.Seq, auditPageRows)
		if err != nil {
			return fmt.Errorf("cannot read the audit: %w", err)
		}
		for i := range rows {
			if err := check.Follow(&rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < auditPageRows {
			return check.End(head)
		}
	}
}

// notOK turns the answer of a check into an error. "" is no answer.
func notOK(found string) error {
	if found == "ok" || found == "" {
		return nil
	}
	return errors.New(found)
}

// FullSync is the value of SQLite's setting synchronous with which a commit is on the disk when it returns.
const FullSync = 2

// Synchronous returns the value of SQLite's setting synchronous with which the server writes to the database at a path.
// It opens a connection with the server's settings and asks SQLite. It writes nothing.
func Synchronous(ctx context.Context, path string) (level int, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, err
	}

	db, err := sql.Open("sqlite", uri(path)+"?mode=ro&_pragma=busy_timeout(5000)&_pragma="+writerSync)
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	if err := db.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&level); err != nil {
		return 0, fmt.Errorf("cannot read the settings of %s: %w", path, err)
	}

	return level, nil
}
