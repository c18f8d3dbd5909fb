package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// BackupOptions say how a server backs itself up.
type BackupOptions struct {
	To         string // folder; "": no backups are made
	Every      time.Duration
	Keep       int      // how many backups stay
	Recipients []string // public keys that they are encrypted for
}

// openBackups makes the schedule of backups.
func (s *Server) openBackups(context.Context) error {
	o := &s.options.Backup
	if o.To == "" {
		if len(o.Recipients) > 0 {
			return errors.New("--backup-recipient is given and --backup-to is not: no backups would be made")
		}
		return nil
	}
	if s.options.Record != "" {
		return errors.New("--backup-to copies a record in the data folder; with --record use the backups of PostgreSQL " +
			"(docs/backup-and-restore.md), and keep a copy of the keys in the data folder")
	}

	to, err := o.check()
	if err != nil {
		return err
	}
	if at, err := backup.Newest(o.To); err == nil {
		s.metrics.LastBackup(at)
	}

	s.backups, err = backup.NewScheduler(backup.SchedulerOptions{Database: openDatabase{sqlstore.Files{}, s.store}, Data: s.options.Data, Dir: o.To,
		Every: o.Every, Keep: o.Keep, Recipients: to, Program: s.options.Version, Done: s.metrics.BackedUp,
		Log: s.options.Log})
	return err
}

// check finds what is wrong with the options and reads the recipients.
func (o *BackupOptions) check() ([]backup.Recipient, error) {
	if o.Every < time.Minute {
		return nil, fmt.Errorf("--backup-every %s: use a minute or more", o.Every)
	}
	if o.Keep < 1 || o.Keep > 10_000 {
		return nil, fmt.Errorf("--backup-keep %d: use 1 to 10000", o.Keep)
	}
	if len(o.Recipients) == 0 {
		return nil, errors.New("--backup-to needs --backup-recipient: every backup is encrypted (gozzard backup keygen)")
	}

	to, err := backup.ParseRecipients(o.Recipients)
	if err != nil {
		return nil, fmt.Errorf("--backup-recipient: %w", err)
	}
	return to, nil
}

// openRestore reads whether the record came out of a backup.
func (s *Server) openRestore(ctx context.Context) (err error) {
	s.restore, err = enrol.OpenRestore(ctx, s.store, s.trust.registry)
	if err == nil && !s.restore.From().IsZero() {
		s.options.Log.Warn("the record was restored from a backup: hosts wait until an admin confirms them "+
			"(gozzard hosts confirm-restore)", "taken", s.restore.From())
	}
	return err
}

// database is the kind of database that a server has.
var database backup.Database = sqlstore.Files{}

// openDatabase is the database of a server that runs, for its own backups.
type openDatabase struct {
	sqlstore.Files
	store *sqlstore.Store
}

// Copy writes a copy of the record as it is at one moment.
func (d openDatabase) Copy(ctx context.Context, from, to string) error {
	return d.store.Copy(ctx, from, to)
}

// CreateBackup writes an encrypted backup of the server with a data folder. The server may be running.
func CreateBackup(ctx context.Context, o backup.CreateOptions) (backup.Manifest, backup.Note, error) {
	o.Database = database
	return backup.Create(ctx, o)
}

// VerifyBackup opens a backup in a temporary folder and checks all of it.
func VerifyBackup(ctx context.Context, file string, ids []backup.Identity, temp string,
	p backup.Progress) (backup.Contents, error) {
	return backup.Verify(ctx, backup.VerifyOptions{Database: database, File: file, Identities: ids, Temp: temp, Progress: p})
}

// RestoreBackup makes the data folder of a server from a backup.
func RestoreBackup(ctx context.Context, o backup.RestoreOptions) (backup.Restored, error) {
	o.Database = database
	return backup.Restore(ctx, o)
}
