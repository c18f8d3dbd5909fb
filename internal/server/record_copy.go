package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// CopyOptions say what CopyRecord copies: from the file in Data to the database at To, or from the database at From to a
// file in Data. One of them is set.
type CopyOptions struct {
	Data     string
	To, From string
	Now      func() time.Time
	Progress func(table string, rows int64)
}

// CopyRecord moves the record of a data folder to PostgreSQL or back. No server may use either of them.
func CopyRecord(ctx context.Context, o CopyOptions) (sqlstore.Transferred, error) {
	if o.To != "" {
		return o.toPostgres(ctx)
	}
	return o.fromPostgres(ctx)
}

// open opens the store in PostgreSQL at an address.
func (o *CopyOptions) open(ctx context.Context, address string) (*sqlstore.Store, string, error) {
	a, err := sqlstore.ParsePostgres(address)
	if err != nil {
		return nil, "", err
	}
	s, err := sqlstore.OpenPostgres(ctx, a.DSN, sqlstore.Options{Log: slog.New(slog.DiscardHandler), Sole: true})
	if err != nil {
		return nil, "", fmt.Errorf("the database %s: %w", a.Name, err)
	}
	return s, a.Name, nil
}

func (o *CopyOptions) toPostgres(ctx context.Context) (t sqlstore.Transferred, err error) {
	// Open both.
	if err := backup.CheckHere(o.Data); err != nil {
		return t, err
	}
	path := (&Options{Data: o.Data}).recordPath()
	if there, err := sqlstore.Exists(ctx, path); err != nil || !there {
		return t, errors.Join(fmt.Errorf("%s is not the data folder of a server with a record", o.Data), err)
	}
	to, name, err := o.open(ctx, o.To)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	from, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, from.Close()) }() // a second time does nothing

	// Copy, and bind the copy to the folder.
	if t, err = sqlstore.Transfer(ctx, from, to, o.Progress); err != nil {
		return t, err
	}
	if err := to.SetInstallation(ctx, strings.ToLower(rand.Text())); err != nil {
		return t, err
	}
	id, err := to.Installation(ctx)
	if err != nil {
		return t, err
	}
	if err := (backup.Place{Installation: id, Database: name}).Write(o.Data); err != nil {
		return t, err
	}

	// Nothing may use the file by mistake: it is old from now on.
	if err := from.Close(); err != nil {
		return t, err
	}
	suffix := ".moved-" + o.Now().UTC().Format("20060102T150405.000Z")
	return t, errors.Join(os.Rename(path, path+suffix), removeFiles(path, "-wal", "-shm", ".sums", ".reserve"))
}

func (o *CopyOptions) fromPostgres(ctx context.Context) (t sqlstore.Transferred, err error) {
	// Open both. The file gets its name when it is complete.
	path := (&Options{Data: o.Data}).recordPath()
	if _, err := os.Lstat(path); err == nil {
		return t, fmt.Errorf("%s exists already", path)
	}
	place, err := backup.ReadPlace(o.Data)
	if err != nil {
		return t, err
	}
	from, name, err := o.open(ctx, o.From)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if id, err := from.Installation(ctx); err != nil || id == "" || id != place.Installation {
		return t, errors.Join(fmt.Errorf("the record in %s does not belong to the data folder %s", name, o.Data), err)
	}

	part := path + ".part"
	rest := []string{"-wal", "-shm", ".sums", ".reserve", ".lock"}
	if err := removeFiles(part, append(rest, "")...); err != nil {
		return t, err
	}
	to, err := sqlstore.OpenSQLite(ctx, part, sqlstore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return t, err
	}
	t, err = sqlstore.Transfer(ctx, from, to, o.Progress)
	if err = errors.Join(err, to.Close()); err != nil {
		return t, errors.Join(err, removeFiles(part, append(rest, "")...))
	}

	// The file first: a folder with both says so, and a folder with none would look like a lost record.
	if err := os.Rename(part, path); err != nil {
		return t, err
	}
	return t, errors.Join(backup.ForgetPlace(o.Data), removeFiles(part, rest...))
}

// removeFiles removes files that belong to a record, if they are there.
func removeFiles(path string, suffixes ...string) (err error) {
	for _, s := range suffixes {
		if e := os.Remove(path + s); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
