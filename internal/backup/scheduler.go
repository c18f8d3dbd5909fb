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

	// longestSleep: a machine that was suspended must not sleep on as if no time had passed.
	longestSleep = 10 * time.Minute
)

var (
	namePattern = regexp.MustCompile(`^gozzard-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.age$`)
	// on its way to such a name
	partPattern = regexp.MustCompile(`^\.gozzard-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.age-[0-9]+$`)
)

// SchedulerOptions say where backups go and how many stay. Database, Data, Dir, Every, Keep and Recipients are required.
type SchedulerOptions struct {
	Database   Database
	Data       string
	Dir        string
	Every      time.Duration
	Keep       int
	Recipients []age.Recipient // public keys: who takes over the server cannot read its backups
	Program    string
	Done       func(at time.Time, err error) // told of every attempt
	Log        *slog.Logger
	Now        func() time.Time
}

// Scheduler makes backups again and again.
type Scheduler struct {
	o    SchedulerOptions
	last time.Time // when this one made the last
}

// NewScheduler checks that backups can be written where they go, so that a wrong folder is noticed at the start.
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
		return nil, fmt.Errorf("cannot make the folder for backups: %w", err)
	}

	probe, err := os.CreateTemp(o.Dir, ".gozzard-probe-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write backups: %w", err)
	}

	return &Scheduler{o: o}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Run makes a backup whenever one is due, until ctx ends. A failure is logged, told and tried again.
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
		k.o.Log.Error("cannot make a backup, trying again", "err", err, "at", notBefore)
	}
}

// due is when the next backup is to be made: at once when there is none.
func (k *Scheduler) due() time.Time {
	now := k.o.Now()
	newest, err := Newest(k.o.Dir)
	if err != nil {
		return now
	}
	if newest.After(now) { // the clock was set back: that one says nothing
		newest = k.last
	}
	if newest.IsZero() || newest.After(now) {
		return now
	}
	return newest.Add(k.o.Every)
}

// Once makes a backup and removes those that are too many.
func (k *Scheduler) Once(ctx context.Context) error {
	at := k.o.Now().UTC()
	_, note, err := Create(ctx, CreateOptions{Database: k.o.Database, Data: k.o.Data,
		To: filepath.Join(k.o.Dir, at.Format(nameLayout)), Recipients: k.o.Recipients, Program: k.o.Program, Now: k.o.Now})
	if err != nil {
		return err
	}

	k.last = at
	if err := k.sweep(); err != nil {
		return err
	}

	k.o.Log.Info("a backup was made", "file", note.File, "bytes", note.Bytes)
	names, err := list(k.o.Dir)
	if err != nil {
		return err
	}

	for _, old := range names[:max(0, len(names)-k.o.Keep)] {
		if old == filepath.Base(note.File) { // by a clock that was set back
			continue
		}
		if err := os.Remove(filepath.Join(k.o.Dir, old)); err != nil {
			return fmt.Errorf("cannot remove an old backup: %w", err)
		}
	}

	return nil
}

// sweep removes what a server that was killed in the middle of a backup has left.
func (k *Scheduler) sweep() error {
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
			return fmt.Errorf("cannot remove what is left of a backup: %w", err)
		}
	}

	return nil
}

// list gives the backups in a folder by name, oldest first. What is called otherwise is not ours to touch.
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

// Newest is when the newest backup of a keeper in a folder was made, by its name; fs.ErrNotExist when there is none.
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
