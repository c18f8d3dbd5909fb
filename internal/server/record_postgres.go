package server

import (
	"context"
	"crypto/rand"
	"fmt"
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

	s.store, err = sqlstore.OpenPostgres(ctx, address.DSN, sqlstore.Options{
		Log: o.Log, Fatal: o.Fatal, Observe: s.metrics.ObserveStore, Sole: true,
	})
	if err != nil {
		return fmt.Errorf("the record in %s: %w", address.Name, err)
	}
	s.onClose("cannot close the record", s.store.Close)
	if address.Weak != "" {
		o.Log.Warn("the connection to the database is not protected: "+address.Weak, "database", address.Name)
	}
	return s.bind(ctx, address.Name)
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

	found := backup.Traces(o.Data)
	switch {
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
		place.Installation = strings.ToLower(rand.Text())
	}

	// The folder first: a server that is killed here finds an empty record and no keys.
	place.Database = database
	if err := place.Write(o.Data); err != nil {
		return fmt.Errorf("cannot note where the record is: %w", err)
	}
	return s.store.SetInstallation(ctx, place.Installation)
}
