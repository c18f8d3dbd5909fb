package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Locks of PostgreSQL belong to the session of the writer. A connection that was lost has lost them, too.

// The classes of our locks; they separate them from those of other programs in the same database.
const (
	lockClass   = 0x676f7a7a    // who may write at all: a sole server, or several that share
	lockWriting = lockClass + 1 // which of several writes now
	schemaKey   = `(CAST(CAST(current_schema() AS regnamespace) AS oid)::bigint & 2147483647)::int`
)

// lockFirst locks the connection that waits in the pool of the writer. The writer takes it out of the pool and locks it
// again, which its own session may.
func lockFirst(ctx context.Context, write *sql.DB, lock func(context.Context, *sql.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	c, err := write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return lock(ctx, c)
}

// lockTimeout is how long a start waits for the session of the server before it.
const lockTimeout = 10 * time.Second

// soleWriter makes a connection of the writer the only one that writes, for as long as it lasts. It waits until the
// database has ended the session of a writer before it.
func soleWriter(ctx context.Context, c *sql.Conn) error {
	return awaitLock(ctx, c, errOtherServer, `SELECT pg_try_advisory_lock($1, `+schemaKey+`)`, lockClass)
}

// sharedWriter makes a connection of the writer the only one of the server with this id, beside those of other servers.
func sharedWriter(server string) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, c *sql.Conn) error {
		err := awaitLock(ctx, c, errSoleServer, `SELECT pg_try_advisory_lock_shared($1, `+schemaKey+`)`, lockClass)
		if err != nil {
			return err
		}
		return awaitLock(ctx, c, errSameServer, `SELECT pg_try_advisory_lock(hashtextextended(current_schema() || '/' || $1, 0))`,
			server)
	}
}

// awaitLock takes a lock, or fails with an error when it does not get it.
func awaitLock(ctx context.Context, c *sql.Conn, failed error, query string, arg any) error {
	for tried := false; ; {
		var got bool
		err := c.QueryRowContext(ctx, query, arg).Scan(&got)
		switch {
		case err != nil && tried && ctx.Err() != nil: // its time ended during a try, not between two
			return failed
		case err != nil:
			return fmt.Errorf("cannot lock the record: %w", err)
		case got:
			return nil
		}
		tried = true
		select {
		case <-ctx.Done():
			return failed
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// oneByOne makes a write transaction wait for those of other servers. So they run one after the other, as those of one
// server do: what a transaction reads is not changed before it commits, and the numbers that transactions draw are in the
// order of their commits.
var oneByOne = fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d, %s)`, lockWriting, schemaKey)

// frozenTimeout ends the session of a server that is frozen in a transaction: all others wait for it.
const frozenTimeout = "3s"

var (
	errOtherServer = errors.New("another server uses this record: stop it first; if it was killed, " +
		"the database ends its session within a minute")
	errSoleServer = errors.New("a server without --cluster-listen or --cluster-nats uses this record alone: stop it, then start it " +
		"with one of them; if it was killed, the database ends its session within a minute")
	errSameServer = errors.New("another server with the same id uses this record: every server needs another data folder, " +
		"which must not be a copy; if this server was killed, the database ends its session within a minute")
)
