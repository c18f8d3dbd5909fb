package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard"
)

// Files works on record files that no Store of this process has open, as backup and restore need it.
type Files struct{}

// Copy is the function Copy.
func (Files) Copy(ctx context.Context, path, to string) error { return Copy(ctx, path, to) }

// Verify is the function Verify.
func (Files) Verify(ctx context.Context, path string, head gozzard.AuditHead) error {
	return Verify(ctx, path, head)
}

// Update brings the record at a path to the schema version of this program.
func (Files) Update(ctx context.Context, path string) error {
	s, err := OpenSQLite(ctx, path, Options{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("cannot close the record %s: %w", path, err)
	}
	return nil
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
