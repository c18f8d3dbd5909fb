package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// RestoredOptions say which record was restored by the tools of PostgreSQL, and the data folder that goes with it.
type RestoredOptions struct {
	Data   string
	Record string // address of the database
	Now    func() time.Time
}

// Restored is the result of MarkRestored.
type Restored struct {
	Taken   time.Time   // of the newest row of the audit in the record: the copy was taken then or later
	Waiting int         // hosts that wait until an admin confirms them
	Signing signing.Key // the new key; zero: an external signer has it, and it is not rotated
}

// MarkRestored prepares a record in PostgreSQL that was restored from a copy, as backup.Restore does with a file. No server
// may use it.
func MarkRestored(ctx context.Context, o RestoredOptions) (r Restored, err error) {
	// Open the record. It must be that of the folder.
	place, err := backup.ReadPlace(o.Data)
	if err != nil {
		return r, err
	}
	if place.Installation == "" {
		return r, fmt.Errorf("%s is not the data folder of a server with its record in PostgreSQL: it has no record.json", o.Data)
	}
	a, err := sqlstore.ParsePostgres(o.Record)
	if err != nil {
		return r, fmt.Errorf("--record: %w", err)
	}
	store, err := sqlstore.OpenPostgres(ctx, a.DSN, sqlstore.Options{Log: slog.New(slog.DiscardHandler), Sole: true})
	if err != nil {
		return r, fmt.Errorf("the database %s: %w", a.Name, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if id, err := store.Installation(ctx); err != nil || id != place.Installation {
		return r, errors.Join(fmt.Errorf("the record in %s does not belong to the data folder %s", a.Name, o.Data), err)
	}

	// Mark it. A command that is killed before its end is run again: until then the server refuses to start.
	if r.Taken, err = store.NewestAudit(ctx); err != nil {
		return r, err
	}
	now := o.Now()
	if r.Taken.IsZero() || r.Taken.After(now) {
		r.Taken = now
	}
	place.Restored = now.UnixMilli() // first: a server that finds a later one starts, because another server has prepared the record
	if err := place.Write(o.Data); err != nil {
		return r, err
	}
	if err := store.MarkRestored(ctx, r.Taken, now); err != nil {
		return r, err
	}
	if _, r.Waiting, err = store.RestoredFrom(ctx); err != nil {
		return r, err
	}

	// Rotate the key, so that agents that have obeyed this server obey no other copy of it.
	_, r.Signing, err = signing.Rotate(o.Data, o.Now)
	if errors.Is(err, signing.ErrOutside) {
		r.Signing, err = signing.Key{}, nil
	}
	if err != nil {
		return r, err
	}
	place.Database, place.Mark, place.Writer = a.Name, 0, "" // the next start notes those of this record
	return r, place.Write(o.Data)
}
