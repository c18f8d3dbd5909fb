package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"filippo.io/age"
)

const (
	nameLayout = "gozzard-20060102T150405.000Z.age"
	firstRetry = 30 * time.Second
	slowRetry  = time.Hour

	// longestSleep is short, because a timer does not count the time in which the machine was suspended.
	longestSleep = 10 * time.Minute
)

var (
	namePattern = regexp.MustCompile(`^gozzard-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.age$`)

	// partPattern is the name of a backup while it is written. Earlier versions wrote no ".tmp".
	partPattern = regexp.MustCompile(`^\.gozzard-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.age(\.tmp)?-[0-9]+$`)
)

// SchedulerOptions say where backups are written, how often, and how many are kept. Database, Data, Dir, Every, Keep
// and Recipients are required.
type SchedulerOptions struct {
	Database   Database
	Data       string
	Dir        string
	Every      time.Duration
	Keep       int
	Recipients []age.Recipient // public keys, so that an attacker on the server cannot read its backups
	Program    string
	Done       func(at time.Time, err error) // called after every attempt; may be nil
	Log        *slog.Logger
	Now        func() time.Time
}

// Scheduler makes backups regularly and removes old ones.
type Scheduler struct {
	o    SchedulerOptions
	last time.Time // of the last backup that it made
}

// NewScheduler checks that backups can be written, so that a wrong folder is noticed at startup.
func NewScheduler(o SchedulerOptions) (*Scheduler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Done == nil {
		o.Done = func(time.Time, error) {}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder for backups: %w", err)
	}

	probe, err := os.CreateTemp(o.Dir, ".gozzard-probe-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write backups: %w", err)
	}

	return &Scheduler{o: o}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Run makes a backup whenever one is due, until ctx ends. It logs a failure, reports it to Done, and tries again.
func (k *Scheduler) Run(ctx context.Context) error {
	failures := 0
	var notBefore time.Time
	for {
		due := k.due()
		if due.Before(notBefore) {
			due = notBefore
		}

		if wait := due.Sub(k.o.Now()); wait > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(min(wait, longestSleep)):
			}
			continue
		}

		at := k.o.Now()
		err := k.Once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		k.o.Done(at, err)
		if err == nil {
			failures, notBefore = 0, time.Time{}
			continue
		}
		failures++
		notBefore = k.o.Now().Add(min(firstRetry<<min(failures-1, 10), slowRetry, k.o.Every))
		k.o.Log.Error("backup failed, trying again", "err", err, "at", notBefore)
	}
}

// due is when the next backup must be made: now if there is none.
func (k *Scheduler) due() time.Time {
	now := k.o.Now()
	newest, err := Newest(k.o.Dir)
	if err != nil {
		return now
	}
	if newest.After(now) { // the clock was set back, so the time in the name cannot be used
		newest = k.last
	}
	if newest.IsZero() || newest.After(now) {
		return now
	}
	return newest.Add(k.o.Every)
}

// Once makes a backup and removes old ones.
func (k *Scheduler) Once(ctx context.Context) error {
	// Make the backup.
	at := k.o.Now().UTC()
	_, note, err := Create(ctx, CreateOptions{
		Database: k.o.Database, Data: k.o.Data, To: filepath.Join(k.o.Dir, at.Format(nameLayout)),
		Recipients: k.o.Recipients, Program: k.o.Program, Now: k.o.Now,
	})
	if err != nil {
		return err
	}

	k.last = at

	// Remove leftovers and old backups.
	if err := k.removeLeftovers(); err != nil {
		return err
	}
	k.o.Log.Info("backup made", "file", note.File, "bytes", note.Bytes)
	names, err := list(k.o.Dir)
	if err != nil {
		return err
	}

	for _, old := range names[:max(0, len(names)-k.o.Keep)] {
		if old == filepath.Base(note.File) { // the clock was set back
			continue
		}
		if err := os.Remove(filepath.Join(k.o.Dir, old)); err != nil {
			return fmt.Errorf("cannot remove an old backup: %w", err)
		}
	}

	return nil
}

// removeLeftovers removes incomplete files of a server that was killed during a backup.
func (k *Scheduler) removeLeftovers() error {
	all, err := os.ReadDir(k.o.Dir)
	if err != nil {
		return fmt.Errorf("cannot list the backups: %w", err)
	}

	for _, e := range all {
		st, err := e.Info()
		if err != nil || !partPattern.MatchString(e.Name()) || !st.Mode().IsRegular() ||
			k.o.Now().Sub(st.ModTime()) < workStale {
			continue
		}
		if err := os.Remove(filepath.Join(k.o.Dir, e.Name())); err != nil {
			return fmt.Errorf("cannot remove an incomplete backup: %w", err)
		}
	}

	return nil
}

// list returns the names of the backups in a folder, oldest first. It ignores files with other names.
func list(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the backups: %w", err)
	}
	for _, e := range all {
		if e.Type().IsRegular() && namePattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names) // the time is in the name
	return names, nil
}

// Newest is when the newest backup of a Scheduler in a folder was made, by its name. It returns fs.ErrNotExist if there
// is none.
func Newest(dir string) (time.Time, error) {
	names, err := list(dir)
	if err != nil {
		return time.Time{}, err
	}
	if len(names) == 0 {
		return time.Time{}, fmt.Errorf("no backup in %s: %w", dir, fs.ErrNotExist)
	}
	return time.Parse(nameLayout, names[len(names)-1])
}
