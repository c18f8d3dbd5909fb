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

// reserveBytes is kept beside the database and given up when the disk is full: on a full disk even a DELETE fails,
// because it must be written somewhere first. With it, verdicts can still be recorded and old tasks pruned.
const reserveBytes = 8 << 20

// room watches the space of an SQLite database. While it is short only writes that finish accepted work or remove
// something are let through.
type room struct {
	o       Options
	path    string // of the reserve file
	isShort bool
	looked  time.Time // when room was last looked for
}

// open makes the reserve, or begins short when there is no room for it.
func (r *room) open(ctx context.Context) error {
	if st, err := os.Stat(r.path); err == nil && st.Size() >= reserveBytes {
		return nil
	}
	err := r.make()
	if isNoRoom(err) {
		return r.full(ctx, nil)
	}
	return err
}

// full gives the reserve up and, with a connection, copies the log into the database with the room it leaves, so
// that the log can begin anew.
func (r *room) full(ctx context.Context, c *sql.Conn) error {
	r.looked = r.o.Now()
	if !r.isShort {
		r.isShort = true
		r.o.Log.Error("the record has no room: new operations are refused until there is space on its disk again",
			"reserve", r.path)
	}

	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot give the reserve of the record up: %w", err)
	}
	if c == nil {
		return nil
	}
	if _, err := checkpoint(ctx, c, "TRUNCATE"); err != nil {
		return fmt.Errorf("cannot empty the write-ahead log: %w", err)
	}

	return nil
}

// short looks for room again once a second while there is too little.
func (r *room) short(ctx context.Context, c *sql.Conn) (bool, error) {
	if !r.isShort || r.o.Now().Sub(r.looked) < time.Second {
		return r.isShort, nil
	}

	r.looked = r.o.Now()
	shrunk := shrink(ctx, c) // without room even for that, make will find none either

	if err := r.make(); err != nil {
		if isNoRoom(err) {
			err = nil
		}
		return true, errors.Join(shrunk, err)
	}

	r.isShort = false
	r.o.Log.Info("the record has room again")
	return false, shrunk
}

// make writes the reserve and shows that there is half as much again beyond it, so that the store does not go back
// and forth at the brink. The bytes are random: some file systems store zeros in no space at all.
func (r *room) make() (err error) {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make the reserve: %w", err)
	}

	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("cannot make the reserve: %w", errors.Join(err, os.Remove(r.path)))
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
