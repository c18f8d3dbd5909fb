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

// DefaultLimit is how long a new program may take to be welcomed.
const DefaultLimit = 60 * time.Second

// Options of an updater. Dir, Program, Version and Key are required.
type Options struct {
	Dir     string // state folder of the agent
	Program string // the file that it runs from, by its real path
	Version string // that runs
	Args    []string
	Limit   time.Duration

	// Key is the release key that the host's owner put there. It is asked for with every update: a key that is gone
	// counts at once.
	Key func() (ed25519.PublicKey, error)
	// AllowDowngrade is the owner's word that versions need not go up.
	AllowDowngrade func() bool

	Now func() time.Time
	Log *slog.Logger
}

// Updater replaces the program of one agent. It is safe for concurrent use.
type Updater struct {
	o      Options
	orders chan gozzard.UpdateOrder // capacity 1
	placed chan struct{}            // capacity 1: a new program is in place

	mu      sync.Mutex
	trial   bool
	welcome chan struct{} // closed when the trial is over well
	answer  gozzard.UpdateReport
	busy    bool // with the order that answer is about
}

// New makes an updater. Begin must follow when an agent starts.
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

	return &Updater{o: o, orders: make(chan gozzard.UpdateOrder, 1), placed: make(chan struct{}, 1),
		welcome: make(chan struct{})}
}

// previous is where the program before is kept.
func (u *Updater) previous() string { return u.o.Program + ".previous" }

// Begin is called when the agent starts, before anything else is done. An error of kind *Over says that this
// program had its chance: RollBack and hand over. Other errors leave the trial as it is.
func (u *Updater) Begin() error {
	u.sweep()
	var over string
	err := change(u.o.Dir, func(s *State) error {
		s.Program, s.PID = u.o.Program, os.Getpid()
		t := s.Trial
		switch {
		case t == nil:
			return nil
		case t.Version != u.o.Version:
			u.settle(s, t)
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
			over = fmt.Sprintf("release %s was started %d times and never welcomed by the server", t.Version,
				t.Starts-1)
		}

		return nil
	})

	if err == nil && over != "" {
		return &Over{over}
	}

	return err
}

// settle ends a trial whose program is not the one that runs: the one before is back, or the new one was never put
// in place.
func (u *Updater) settle(s *State, t *Trial) {
	s.Trial = nil
	if t.Back == "" {
		u.o.Log.Warn("a new program was prepared and does not run, it is forgotten", "new", t.Version, "running",
			u.o.Version)
		return
	}
	s.refuse(Failed{Version: t.Version, At: u.o.Now().UTC(), Reason: t.Back})
	u.o.Log.Error("a new program was rolled back", "new", t.Version, "running", u.o.Version, "reason", t.Back)
}

// Over says why a trial is over.
type Over struct{ Reason string }

func (o *Over) Error() string { return o.Reason }

// OnTrial reports whether this program has yet to be welcomed, and gives what is closed when it is.
func (u *Updater) OnTrial() (trial bool, welcomed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trial, u.welcome
}

// Limit is how long a trial lasts.
func (u *Updater) Limit() time.Duration { return u.o.Limit }

// Placed has something when a new program is in place and shall take over.
func (u *Updater) Placed() <-chan struct{} { return u.placed }

// Welcomed is called when the server has welcomed this program: it stays.
func (u *Updater) Welcomed() {
	err := change(u.o.Dir, func(s *State) error {
		s.Program, s.PID = u.o.Program, os.Getpid()
		if s.Trial != nil && s.Trial.Version == u.o.Version {
			s.Trial = nil
		}
		s.forget(u.o.Version)
		if v, err := release.ParseVersion(u.o.Version); err == nil {
			if h, err := release.ParseVersion(s.Highest); err != nil || v.Compare(h) > 0 {
				s.Highest = u.o.Version
			}
		}
		return nil
	})

	u.mu.Lock()
	defer u.mu.Unlock()

	if err != nil { // the trial goes on: the next session may find the disk better
		u.o.Log.Error("cannot note that this program was welcomed", "err", err)
		return
	}

	if u.trial {
		u.trial = false
		close(u.welcome)
		u.o.Log.Info("the new program was welcomed and stays", "version", u.o.Version)
	}
}

// RollBack puts the previous program in place. Whoever calls it hands over to Program afterwards. When there is
// none to go back to, the trial ends and this program stays: any agent is better than none.
func (u *Updater) RollBack(reason string) error {
	if _, err := os.Stat(u.previous()); err != nil {
		u.mu.Lock()
		u.trial = false
		u.mu.Unlock()
		return errors.Join(fmt.Errorf("cannot roll release %s back, it stays: %w", u.o.Version, err),
			change(u.o.Dir, func(s *State) error { s.Trial = nil; return nil }))
	}

	err := change(u.o.Dir, func(s *State) error {
		if s.Trial != nil && s.Trial.Version == u.o.Version {
			s.Trial.Back = clip(reason)
		}
		return nil
	})

	if err != nil { // not remembered, and done all the same: the program that works comes first
		u.o.Log.Error("cannot note that this program is rolled back", "err", err)
	}
	if err := os.Rename(u.previous(), u.o.Program); err != nil {
		return fmt.Errorf("cannot roll release %s back: %w", u.o.Version, err)
	}
	if err := atomicfile.SyncFolder(filepath.Dir(u.o.Program)); err != nil {
		u.o.Log.Error("cannot sync the folder of the program", "err", err)
	}

	u.o.Log.Error("this program is rolled back", "version", u.o.Version, "reason", reason)
	return nil
}

// place makes a checked program the one that starts next. The order of the steps is that of their durability: a
// trial is on record before its file can run, and the previous program is kept before that.
func (u *Updater) place(m *release.Manifest, staged string) error {
	unlock, err := take(filepath.Join(u.o.Dir, lockName), true)
	if err != nil {
		return err
	}

	defer unlock()
	s, err := ReadState(u.o.Dir)
	if err != nil {
		return err
	}
	if s.Trial != nil {
		return fmt.Errorf("release %s is on trial: wait until it is over", s.Trial.Version)
	}
	if err := os.Remove(u.previous()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot keep the previous program: %w", err)
	}
	if err := os.Link(u.o.Program, u.previous()); err != nil {
		return fmt.Errorf("cannot keep the previous program: %w", err)
	}

	folder := filepath.Dir(u.o.Program)
	before := s
	s.Program = u.o.Program
	s.Trial = &Trial{Version: m.Version, From: u.o.Version, Placed: u.o.Now().UTC()}
	if err := errors.Join(atomicfile.SyncFolder(folder), s.write(u.o.Dir, nil)); err != nil {
		return err
	}
	if err := os.Rename(staged, u.o.Program); err != nil {
		return errors.Join(fmt.Errorf("cannot put the new program in place: %w", err), before.write(u.o.Dir, nil))
	}

	return atomicfile.SyncFolder(folder)
}

// stage writes the program of a release beside the one that runs, checked to the last bit.
func (u *Updater) stage(f release.File, from io.Reader) (path string, err error) {
	info, err := os.Stat(u.o.Program)
	if err != nil {
		return "", fmt.Errorf("cannot look at the program that runs: %w", err)
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

func (u *Updater) staged() string { return "." + filepath.Base(u.o.Program) + ".update-" }

// sweep removes what an update that was cut off has left beside the program.
func (u *Updater) sweep() {
	unlock, err := take(filepath.Join(u.o.Dir, busyName), false)
	if err != nil { // somebody is at it
		return
	}
	defer unlock()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(u.o.Program), u.staged()+"*"))
	for _, path := range left {
		_ = os.Remove(path) // it is found again the next time
	}
}

// Platform is what this program was built for.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
