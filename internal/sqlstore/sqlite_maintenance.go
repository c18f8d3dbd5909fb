package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"modernc.org/sqlite"
)

// checkpointPages is how long the write-ahead log gets before it is copied into the database, in pages of 4 KiB. It is
// as much as the reserve file has, so that on a full disk the copy has enough space when that file is removed.
const checkpointPages = reserveBytes / 4096

// sqliteMaintenance watches the disk space and keeps the write-ahead log short.
type sqliteMaintenance struct {
	*reserve
	presence *presence
	classify func(error) failure
	warned   time.Time // when it last logged that the write-ahead log grows
}

// afterCommit copies the log into the database when it has become long. SQLite would do that by itself, but would not
// report a failed fsync.
func (m *sqliteMaintenance) afterCommit(ctx context.Context, c *sql.Conn) error {
	var pages int
	count := func(reset bool) error {
		return c.Raw(func(dc any) (err error) {
			pages, _, err = dc.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, reset)
			return err
		})
	}

	// Let the log grow to its limit. While the disk is low on space it must not grow at all.
	if err := count(false); err != nil || pages == 0 || pages < checkpointPages && !m.low {
		return err
	}

	left, err := m.checkpoint(ctx, c, "PASSIVE")
	if err != nil {
		return m.checkpointFailed(ctx, err)
	}
	if left > 16*checkpointPages && m.o.Now().Sub(m.warned) > time.Minute {
		m.warned = m.o.Now()
		m.o.Log.Warn("the write-ahead log of the database grows: a long read keeps it from being emptied",
			"pages", left)
	}

	return count(true)
}

// checkpointFailed handles the error of a checkpoint. On a full disk, or while another process uses the database, it
// is no failure: the log still has what was committed, and the next commit tries again.
func (m *sqliteMaintenance) checkpointFailed(ctx context.Context, err error) error {
	switch m.classify(err) {
	case failFull:
		return m.diskFull(ctx, nil)
	case failBroken:
		return nil
	}
	return fmt.Errorf("cannot empty the write-ahead log: %w", err)
}

func (m *sqliteMaintenance) present() error { return m.presence.check() }

func (m *sqliteMaintenance) watch() { m.presence.watch() }

func (m *sqliteMaintenance) beforeClose(ctx context.Context, c *sql.Conn) error {
	if _, err := m.checkpoint(ctx, c, "TRUNCATE"); err != nil {
		return m.checkpointFailed(ctx, err)
	}
	return nil
}

// checkpoint copies the write-ahead log into the database, in one of SQLite's modes. It returns how many pages of the
// log are not yet in the database. Before that it writes the checksums of the pages in the log.
func (r *reserve) checkpoint(ctx context.Context, c *sql.Conn, mode string) (left int, err error) {
	defer r.sums.beforeCheckpoint()()
	var busy, log, done int
	if err := c.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &log, &done); err != nil {
		return 0, err
	}
	return log - done, nil
}

// shrink returns free pages of the database to the disk, so that pruning alone can free enough of it.
func (r *reserve) shrink(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "PRAGMA incremental_vacuum(2048)"); err != nil {
		return err
	}
	_, err := r.checkpoint(ctx, c, "TRUNCATE")
	return err
}
