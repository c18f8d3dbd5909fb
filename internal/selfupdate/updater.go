package selfupdate

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/release"
)

// DefaultLimit is how long a new program may take until the server welcomes it.
const DefaultLimit = 60 * time.Second

// Options of an updater. Dir, Program, Version and Key are required.
type Options struct {
	Dir     string        // the state folder of the agent
	Program string        // the real path of the agent's program
	Version string        // the version that runs
	Args    []string      // the arguments of the agent
	Limit   time.Duration // how long a trial lasts; the default is DefaultLimit

	// Key returns the release key that the owner has put on the host. It is called for every update, so a key that
	// was removed is no longer used.
	Key func() (ed25519.PublicKey, error)
	// AllowDowngrade reports whether the owner allows older versions.
	AllowDowngrade func() bool

	Now func() time.Time
	Log *slog.Logger
}

// Updater replaces the program of one agent. It is safe for concurrent use.
type Updater struct {
	o      Options
	orders chan gozzard.UpdateOrder // capacity 1
	placed chan struct{}            // capacity 1: a new program is installed

	mu      sync.Mutex
	trial   bool                 // this program is on trial
	welcome chan struct{}        // closed when the trial has succeeded
	answer  gozzard.UpdateReport // to the last order
	busy    bool                 // the last order is being carried out
}

// New makes an updater. When an agent starts, Begin must follow.
func New(o Options) *Updater {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.AllowDowngrade == nil {
		o.AllowDowngrade = func() bool { return false }
	}

	return &Updater{
		o:       o,
		orders:  make(chan gozzard.UpdateOrder, 1),
		placed:  make(chan struct{}, 1),
		welcome: make(chan struct{}),
	}
}

// previous is the file of the previous program.
func (u *Updater) previous() string { return u.o.Program + ".previous" }

// Begin must be called when the agent starts, before anything else. An error of type *Over says that the trial of this
// program has failed: the caller must call RollBack and start the previous program. Other errors do not change the
// trial.
func (u *Updater) Begin() error {
	u.removeLeftovers()
	var over string
	err := change(u.o.Dir, func(s *State) error {
		s.Program, s.PID = u.o.Program, os.Getpid()
		t := s.Trial
		switch {
		case t == nil:
			return nil
		case t.Version != u.o.Version:
			u.endTrial(s, t)
			return nil
		}

		u.mu.Lock()
		u.trial = true
		u.mu.Unlock()
		t.Starts++

		switch {
		case t.Back != "":
			over = t.Back
		case t.Starts > 1:
			over = fmt.Sprintf("release %s was started %d times and the server never welcomed it",
				t.Version, t.Starts-1)
		}
		return nil
	})

	if err == nil && over != "" {
		return &Over{over}
	}
	return err
}

// endTrial ends a trial of a program that is not the one that runs: the previous program was restored, or the new one
// was never installed.
func (u *Updater) endTrial(s *State, t *Trial) {
	s.Trial = nil
	if t.Back == "" {
		u.o.Log.Warn("a new program was prepared but does not run, its trial is cancelled",
			"new", t.Version, "running", u.o.Version)
		return
	}

	s.addFailed(Failed{Version: t.Version, At: u.o.Now().UTC(), Reason: t.Back})
	u.o.Log.Error("a new program was rolled back", "new", t.Version, "running", u.o.Version, "reason", t.Back)
}

// Over says why a trial has failed.
type Over struct{ Reason string }

func (o *Over) Error() string { return o.Reason }

// OnTrial reports whether the server has not welcomed this program yet. It also returns a channel that is closed when
// the server does.
func (u *Updater) OnTrial() (trial bool, welcomed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trial, u.welcome
}

// Limit is how long a trial lasts.
func (u *Updater) Limit() time.Duration { return u.o.Limit }

// Placed receives an element when a new program is installed and must take over.
func (u *Updater) Placed() <-chan struct{} { return u.placed }

// Welcomed must be called when the server has welcomed this program. The program then stays.
func (u *Updater) Welcomed() {
	err := change(u.o.Dir, func(s *State) error {
		s.Program, s.PID = u.o.Program, os.Getpid()
		if s.Trial != nil && s.Trial.Version == u.o.Version {
			s.Trial = nil
		}
		s.removeFailed(u.o.Version)
		if v, err := release.ParseVersion(u.o.Version); err == nil {
			if h, err := release.ParseVersion(s.Highest); err != nil || v.Compare(h) > 0 {
				s.Highest = u.o.Version
			}
		}
		return nil
	})

	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil { // the trial goes on, and the next session tries again
		u.o.Log.Error("cannot record that the server has welcomed this program", "err", err)
		return
	}
	if u.trial {
		u.trial = false
		close(u.welcome)
		u.o.Log.Info("the server has welcomed the new program, it stays", "version", u.o.Version)
	}
}

// RollBack restores the previous program. The caller must then start Options.Program. If there is no previous program,
// the trial ends and this program stays: any agent is better than none.
func (u *Updater) RollBack(reason string) error {
	// Keep this program if there is no other.
	if _, err := os.Stat(u.previous()); err != nil {
		u.mu.Lock()
		u.trial = false
		u.mu.Unlock()
		return errors.Join(fmt.Errorf("cannot roll release %s back, it stays: %w", u.o.Version, err),
			change(u.o.Dir, func(s *State) error { s.Trial = nil; return nil }))
	}

	// Record why. If that fails, go on: a program that works is more important.
	err := change(u.o.Dir, func(s *State) error {
		if s.Trial != nil && s.Trial.Version == u.o.Version {
			s.Trial.Back = clip(reason)
		}
		return nil
	})
	if err != nil {
		u.o.Log.Error("cannot record that this program is rolled back", "err", err)
	}

	// Restore the previous program.
	if err := os.Rename(u.previous(), u.o.Program); err != nil {
		return fmt.Errorf("cannot roll release %s back: %w", u.o.Version, err)
	}
	if err := atomicfile.SyncFolder(filepath.Dir(u.o.Program)); err != nil {
		u.o.Log.Error("cannot sync the folder of the program", "err", err)
	}
	u.o.Log.Error("this program is rolled back", "version", u.o.Version, "reason", reason)
	return nil
}

// place makes a checked program the one that starts next. The order of the steps matters for a crash: the previous
// program is saved first, then the trial is recorded, and only then is the new file installed.
func (u *Updater) place(m *release.Manifest, staged string) error {
	// Check that no other trial has begun.
	unlock, err := lockPath(filepath.Join(u.o.Dir, lockName), true)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := ReadState(u.o.Dir)
	if err != nil {
		return err
	}
	if s.Trial != nil {
		return fmt.Errorf("release %s is on trial: wait until the trial ends", s.Trial.Version)
	}

	// Save the previous program.
	if err := os.Remove(u.previous()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot save the previous program: %w", err)
	}
	if err := os.Link(u.o.Program, u.previous()); err != nil {
		return fmt.Errorf("cannot save the previous program: %w", err)
	}

	// Record the trial.
	folder := filepath.Dir(u.o.Program)
	before := s
	s.Program = u.o.Program
	s.Trial = &Trial{Version: m.Version, From: u.o.Version, Placed: u.o.Now().UTC()}
	if err := errors.Join(atomicfile.SyncFolder(folder), s.write(u.o.Dir, nil)); err != nil {
		return err
	}

	// Install the new program.
	if err := os.Rename(staged, u.o.Program); err != nil {
		return errors.Join(fmt.Errorf("cannot install the new program: %w", err), before.write(u.o.Dir, nil))
	}
	return atomicfile.SyncFolder(folder)
}

// stage writes the program of a release beside the one that runs, and checks its content.
func (u *Updater) stage(f release.File, from io.Reader) (path string, err error) {
	info, err := os.Stat(u.o.Program)
	if err != nil {
		return "", fmt.Errorf("cannot examine the program that runs: %w", err)
	}
	out, err := os.CreateTemp(filepath.Dir(u.o.Program), u.staged()+"*")
	if err != nil {
		return "", fmt.Errorf("cannot write beside the program that runs: %w", err)
	}

	err = f.Copy(out, from)
	if err == nil {
		err = out.Chmod(info.Mode().Perm() | 0o500)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	return out.Name(), nil
}

// staged is the beginning of the name of a file that stage writes.
func (u *Updater) staged() string { return "." + filepath.Base(u.o.Program) + ".update-" }

// removeLeftovers removes files that an interrupted update has left beside the program.
func (u *Updater) removeLeftovers() {
	unlock, err := lockPath(filepath.Join(u.o.Dir, busyName), false)
	if err != nil { // an update is in progress
		return
	}
	defer unlock()

	left, _ := filepath.Glob(filepath.Join(filepath.Dir(u.o.Program), u.staged()+"*"))
	for _, path := range left {
		_ = os.Remove(path) // after an error, the next start tries again
	}
}

// Platform is the platform that this program was built for.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
