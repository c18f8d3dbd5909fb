package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// Files works on SQLite databases by the paths of their files, for backups.
type Files struct{}

// Copy writes a copy of a database as it is at one moment.
func (Files) Copy(ctx context.Context, from, to string) error { return Copy(ctx, from, to) }

// Look counts what is in a database.
func (Files) Look(ctx context.Context, path string) (record.Survey, error) { return Look(ctx, path) }

// Verify checks that a database is sound and that its audit is unbroken up to a row.
func (Files) Verify(ctx context.Context, path string, audit gozzard.AuditHead) error {
	return Verify(ctx, path, audit)
}

// Upgrade brings a database to the format of this program.
func (Files) Upgrade(ctx context.Context, path string) error {
	s, err := OpenSQLite(ctx, path, Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// Exists reports whether there is a record at a path: not when the file is missing, empty or a database without tables.
func Exists(ctx context.Context, path string) (there bool, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot open the database: %w", err)
	}

	db, err := openReadOnly(path)
	if err != nil {
		return false, err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	var tables int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&tables); err != nil {
		return true, nil // it is damaged or of another program: opening it says so
	}
	return tables > 0, nil
}

// MarkRestored calls Store.MarkRestored for the record at a path. All changes are in the file itself when it returns,
// so that the file can be moved.
func (Files) MarkRestored(ctx context.Context, path string, taken, now time.Time) error {
	s, err := OpenSQLite(ctx, path, Options{})
	if err != nil {
		return err
	}

	err = s.MarkRestored(ctx, taken, now)
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("cannot prepare the restored record: %w", err)
	}
	if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
		return errors.New("cannot prepare the restored record: its write-ahead log is not empty")
	}
	return nil
}
