package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// openPostgres opens a record in PostgreSQL. The keys stay in the data folder, so the record and the folder must belong
// together: both have the id of the installation.
func (s *Server) openPostgres(ctx context.Context) error {
	o := &s.options
	switch there, err := sqlstore.Exists(ctx, o.recordPath()); {
	case err != nil:
		return err
	case there:
		return fmt.Errorf("--record names a database, but the record of this data folder is %s: start without --record, or use "+
			"another data folder", o.recordPath())
	}
	address, err := sqlstore.ParsePostgres(o.Record)
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}

	opts := sqlstore.Options{Log: o.Log, Fatal: s.noteAndEnd, Observe: s.metrics.ObserveStore, Sole: !o.shared, Now: o.Now}
	if o.shared {
		if opts.Server, err = keptID(o.Data); err != nil {
			return err
		}
		s.changes = newChanges(s)
		opts.Changed = s.changes.changed
	}
	s.store, err = sqlstore.OpenPostgres(ctx, address.DSN, opts)
	if err != nil {
		return fmt.Errorf("the record in %s: %w", address.Name, err)
	}
	s.seen = &seenMark{store: s.store, data: o.Data, log: o.Log}
	s.onClose("cannot note how far the record has come", s.seen.write) // after the last transaction
	s.onClose("cannot close the record", s.store.Close)
	if address.Weak != "" {
		o.Log.Warn("the connection to the database is not protected: "+address.Weak, "database", address.Name)
	}
	return s.bind(ctx, address.Name)
}

// PasswordShown reports whether the arguments of a program have the address of a database with a password in it. The
// environment and files of settings are not shown to other accounts.
func PasswordShown(address string, args []string) bool {
	a, err := sqlstore.ParsePostgres(address)
	return err == nil && a.Password &&
		slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, address) })
}

// bind checks that the record belongs to the data folder. A new record is bound to it.
func (s *Server) bind(ctx context.Context, database string) error {
	o := &s.options
	place, err := backup.ReadPlace(o.Data)
	if err != nil {
		return err
	}
	recorded, err := s.store.Installation(ctx)
	if err != nil {
		return err
	}

	mark, err := s.store.Marked(ctx)
	if err != nil {
		return err
	}
	restored, err := s.store.RestoreMark(ctx)
	if err != nil {
		return err
	}

	found := backup.Traces(o.Data)
	switch {
	case recorded != "" && recorded == place.Installation && place.Writer != "" && restored > place.Restored:
		o.Log.Warn("the record was restored from a copy since this server ran, and was prepared for that at another server")
	case recorded != "" && recorded == place.Installation && place.Writer == s.store.Writer() && sqlstore.SetBack(place.Mark, mark):
		return fmt.Errorf("the record in %s was set back: it has lost changes that this server has recorded. If the database was "+
			"restored on purpose: gozzard record mark-restored --data %s --record ADDRESS. If not, correct --record, or bring back "+
			"the newest state of the database. Nothing was changed", database, o.Data)
	case recorded != "" && recorded == place.Installation:
	case recorded != "":
		return fmt.Errorf("the record in %s belongs to another installation: %s has not its keys, and its hosts would not obey "+
			"this server. Use the data folder that goes with it, or another database", database, o.Data)
	case len(found) > 0 && !o.NewRecord:
		return fmt.Errorf("the record in %s is empty, but %s has %s: this is not a first start. Correct --record, or restore the "+
			"database. To begin again with an empty record, without tasks, definitions, accounts and hosts: gozzard server "+
			"--data %s --new-record", database, o.Data, strings.Join(found, ", "), o.Data)
	default:
		s.replaced = len(found) > 0
		place.Installation, mark = strings.ToLower(rand.Text()), 0
	}

	// The folder first: a server that is killed here finds an empty record and no keys.
	place.Database, place.Mark, place.Writer, place.Restored = database, mark, s.store.Writer(), restored
	if err := place.Write(o.Data); err != nil {
		return fmt.Errorf("cannot note where the record is: %w", err)
	}
	return s.store.SetInstallation(ctx, place.Installation)
}
