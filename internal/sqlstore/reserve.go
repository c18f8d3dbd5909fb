package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// reserveBytes is the size of the reserve file.
const reserveBytes = 8 << 20

// reserve is a file beside an SQLite database that holds disk space for the worst moment. On a full disk even a
// DELETE fails, because SQLite must write it to its log first. So the store removes the reserve file when the disk is
// full: then verdicts can still be recorded and old tasks pruned. Until the file can be written again, the store
// rejects writes that record new facts, and accepts those that finish accepted work or remove something.
type reserve struct {
	o         Options
	path      string
	sums      *pageSums
	low       bool      // the file was given up, and could not be written again yet
	checkedAt time.Time // when the disk was last found full, or last tried again
}

// open writes the reserve file, or starts low on space when the disk has no room for it.
func (r *reserve) open(ctx context.Context) error {
	if st, err := os.Stat(r.path); err == nil && st.Size() >= reserveBytes {
		return nil
	}
	err := r.write()
	if isDiskFull(err) {
		return r.diskFull(ctx, nil)
	}
	return err
}

// diskFull removes the reserve file. If there is a connection, it copies the write-ahead log into the database with
// the space gained, so that the log can start again from its beginning.
func (r *reserve) diskFull(ctx context.Context, c *sql.Conn) error {
	r.checkedAt = r.o.Now()
	if !r.low {
		r.low = true
		r.o.Log.Error("the disk of the database is full: new operations are rejected until there is space again",
			"reserve", r.path)
	}

	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the reserve file of the database: %w", err)
	}
	if c == nil {
		return nil
	}
	if _, err := r.checkpoint(ctx, c, "TRUNCATE"); err != nil {
		return fmt.Errorf("cannot empty the write-ahead log: %w", err)
	}

	return nil
}

// lowOnSpace reports whether the disk has too little space for new facts. While it has, lowOnSpace tries once a second
// to write the reserve file again.
func (r *reserve) lowOnSpace(ctx context.Context, c *sql.Conn) (bool, error) {
	if !r.low || r.o.Now().Sub(r.checkedAt) < time.Second {
		return r.low, nil
	}

	r.checkedAt = r.o.Now()
	shrinkErr := r.shrink(ctx, c) // if even this finds no space, write below finds none either

	if err := r.write(); err != nil {
		if isDiskFull(err) {
			err = nil
		}
		return true, errors.Join(shrinkErr, err)
	}

	r.low = false
	r.o.Log.Info("the disk of the database has space again")
	return false, shrinkErr
}

// write writes the reserve file. It first writes one and a half times its size, so that the store does not switch
// back and forth when the disk is just about full. The bytes are random, because some file systems store zeros
// without using space.
func (r *reserve) write() (err error) {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the reserve file: %w", err)
	}

	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("cannot write the reserve file: %w", errors.Join(err, os.Remove(r.path)))
		}
	}()

	block := make([]byte, 64<<10)
	for n := 0; n < reserveBytes+reserveBytes/2; n += len(block) {
		_, _ = rand.Read(block) // never fails
		if _, err := f.Write(block); err != nil {
			return err
		}
	}

	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Truncate(reserveBytes); err != nil {
		return err
	}

	return f.Sync()
}
