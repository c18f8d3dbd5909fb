package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// How often all pages of the record are compared with their checksums, and how many bytes in a second.
const (
	pagesEvery = 24 * time.Hour
	pagesPace  = 16 << 20
)

// openRecord opens the database. Nothing else is in the data folder of a new server yet, so that a server that is
// killed during its first start has either no keys or a record.
func (s *Server) openRecord(ctx context.Context) (err error) {
	if err := os.MkdirAll(s.options.Data, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	if err := s.options.checkOwner(); err != nil {
		return err
	}
	if s.options.Record != "" {
		return s.openPostgres(ctx)
	}
	if err := backup.CheckHere(s.options.Data); err != nil {
		return fmt.Errorf("%w; to start the server, use --record", err)
	}
	if s.replaced, err = s.options.checkLost(ctx); err != nil {
		return err
	}
	switch {
	case s.replaced:
		if err := s.options.putAside(s.options.recordPath()); err != nil {
			return err
		}
	case s.options.NewRecord:
		s.options.Log.Warn("--new-record has no effect: no record was lost. Remove this setting")
	}

	s.store, err = sqlstore.OpenSQLite(ctx, s.options.recordPath(), sqlstore.Options{
		Log: s.options.Log, Fatal: s.options.Fatal, Observe: s.metrics.ObserveStore, Lost: s.metrics.RecordLost,
	})
	if err != nil {
		return err
	}
	s.onClose("cannot close the record", s.store.Close)
	s.pages = &pageChecks{store: s.store, options: &s.options, done: s.metrics.RecordChecked}
	return nil
}

// checkOwner refuses a data folder with the secrets of another account before the record is opened. A start that fails
// later leaves files of the record that belong to this account, and the server of the other account cannot use them.
func (o *Options) checkOwner() error {
	err := atomicfile.Check(filepath.Join(o.Data, backup.JoinFile))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%w. Nothing was changed in %s: start the server as the account that owns the folder", err, o.Data)
}

func (o *Options) recordPath() string { return filepath.Join(o.Data, backup.RecordFile) }

// checkLost refuses to make a new record beside the keys of an old one, unless NewRecord asks for it: a record that was
// lost is not a first start. lost reports that the new record takes the place of a lost one.
func (o *Options) checkLost(ctx context.Context) (lost bool, err error) {
	path := o.recordPath()
	there, err := sqlstore.Exists(ctx, path)
	found := backup.Traces(o.Data)
	if err != nil || there || len(found) == 0 {
		return false, err
	}
	if o.NewRecord {
		return true, nil
	}

	verb := "server"
	if o.dev {
		verb = "dev"
	}
	return false, fmt.Errorf("the record %s is missing or empty, but %s has %s: this is not a first start, and "+
		"nothing was changed. Put the record back, with its file %s-wal if there is one. To restore a backup into a new folder: "+
		"gozzard backup restore FILE --identity KEYFILE --data %s. To begin again with an empty record, without tasks, "+
		"definitions, accounts and hosts: gozzard %s --data %s --new-record", path, o.Data, strings.Join(found, ", "),
		backup.RecordFile, filepath.Clean(o.Data)+"-restored", verb, o.Data)
}

// putAside renames what is left of a lost record, because it may be all that is left of it.
func (o *Options) putAside(path string) error {
	suffix := ".lost-" + time.Now().UTC().Format("20060102T150405.000Z")
	for _, name := range []string{path, path + "-wal"} {
		switch err := os.Rename(name, name+suffix); {
		case err == nil:
			o.Log.Warn("kept what is left of the lost record", "file", name+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("cannot keep what is left of the lost record: %w", err)
		}
	}

	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove a file of the lost record: %w", err)
	}
	o.Log.Warn("making a new record beside the keys of a lost one (--new-record): tasks, definitions, businesses, apps, "+
		"people, grants and enrolled hosts are gone", "record", path)
	return nil
}

// keepCredentials gives a record that replaces a lost one the app of credentials.json, with its secret: callers that
// have this file go on. It reports false when the file is missing, or has no such app. Then the file is kept under
// another name.
func (s *Server) keepCredentials(record func(auth.App) error) (kept bool, err error) {
	path := filepath.Join(s.options.Data, "credentials.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the credentials of the lost record: %w", err)
	}

	var c Credentials
	if err := json.Unmarshal(b, &c); err != nil || c.AppCode != firstAppCode || len(c.Secret) < minSecret {
		s.options.Log.Warn("credentials.json does not have the app of this server: it is kept under another name",
			"file", path+".old")
		return false, os.Rename(path, path+".old")
	}

	c.URL, c.CA = s.URL(), s.authorityPEM()
	if err := c.Write(path); err != nil {
		return false, err
	}
	if err := record(trustedApp(firstAppCode, c.Secret)); err != nil {
		return false, err
	}
	s.options.Log.Warn("the new record has the app of credentials.json with the same secret; "+
		"all other apps, people, tokens and grants are gone", "app", firstAppCode, "credentials", path)
	return true, nil
}

// pageChecks compares the pages of the record with their checksums, after the start and then every day.
type pageChecks struct {
	store   *sqlstore.Store
	options *Options
	done    func(at time.Time, damaged int)
	found   atomic.Pointer[string] // what is damaged; nil: nothing is known to be

	structure atomic.Pointer[string] // what the check of the structure found; nil: nothing
}

// checkStructure checks a large record once, beside the work of the server: see sqlstore.Store.CheckStructure.
func (p *pageChecks) checkStructure(ctx context.Context) {
	fault, err := p.store.CheckStructure(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.options.Log.Error("cannot check the structure of the record", "err", err)
	case fault != nil:
		text := fault.Error()
		p.structure.Store(&text)
		p.options.Log.Error("the record is damaged: its disk or another program changed it; the server goes on. Restore a backup",
			"record", p.options.recordPath(), "damage", text)
	}
}

// Run checks until ctx ends.
func (p *pageChecks) Run(ctx context.Context) error {
	p.checkStructure(ctx)
	tick := time.NewTicker(pagesEvery)
	defer tick.Stop()
	for {
		p.check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Detail says what is damaged; "" when nothing is known to be. PostgreSQL checks its own pages: then p is nil.
func (p *pageChecks) Detail() string {
	if p == nil {
		return ""
	}
	if s := cmp.Or(p.found.Load(), p.structure.Load()); s != nil {
		return "the record is damaged: " + *s + "; the server goes on: restore a backup (gozzard doctor shows the details)"
	}
	return ""
}

func (p *pageChecks) check(ctx context.Context) {
	began := time.Now()
	r, err := p.store.CheckPages(ctx, func(bytes int) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(bytes) * time.Second / pagesPace):
		}
	})
	log := p.options.Log
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, sqlstore.ErrNoSums):
		log.Warn("the pages of the record are not checked", "err", err)
		return
	case err != nil:
		log.Error("cannot check the pages of the record", "err", err)
		return
	}

	text, damaged := r.String(), len(r.Damaged)
	if r.LogDamaged {
		damaged++
	}
	p.done(time.Now(), damaged)
	if r.Sound() {
		p.found.Store(nil)
		log.Info("the pages of the record fit their checksums", "pages", r.Pages, "took", time.Since(began))
		return
	}

	p.found.Store(&text)
	log.Error("the record is damaged: its disk or another program changed it; the server goes on. Restore a backup",
		"record", p.options.recordPath(), "damage", text, "pages", r.Damaged[:min(len(r.Damaged), 20)])
}
