package sqlstore

import (
	"context"
	"errors"
	"fmt"
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
