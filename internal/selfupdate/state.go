package selfupdate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

const (
	stateFile  = "update.json"
	lockName   = "update.lock" // locked while the state is changed
	busyName   = "update.busy" // locked while a release is downloaded and installed
	maxState   = 64 << 10
	maxReason  = 500
	maxRefused = 16
)

// State is what a host remembers about updates.
type State struct {
	Highest string   `json:"highest,omitempty"` // the newest version that a server has welcomed here
	Program string   `json:"program,omitempty"` // the program file of the agent
	PID     int      `json:"pid,omitempty"`     // the pid of the agent that started last
	Trial   *Trial   `json:"trial,omitempty"`
	Refused []Failed `json:"refused,omitempty"` // versions that were rolled back, the newest last
}

// Trial is a new program that the server has not welcomed yet.
type Trial struct {
	Version string    `json:"version"`
	From    string    `json:"from"`   // the previous version
	Placed  time.Time `json:"placed"` // when its file was installed
	Starts  int       `json:"starts"`
	Back    string    `json:"back,omitempty"` // why it is being rolled back
}

// Failed is a version that was rolled back.
type Failed struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
}

// ReadState reads the state in a state folder. It is empty if there is no file.
func ReadState(dir string) (State, error) {
	path := filepath.Join(dir, stateFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("cannot read the state of updates: %w", err)
	}
	defer f.Close()

	var s State
	b, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err == nil && len(b) > maxState {
		err = errors.New("it is too long")
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return State{}, fmt.Errorf("cannot read the state of updates in %s: %w", path, err)
	}
	return s, nil
}

// failedReason returns why a version was rolled back, or "" if it was not.
func (s *State) failedReason(version string) string {
	for _, f := range s.Refused {
		if f.Version == version {
			return f.Reason
		}
	}
	return ""
}

// removeFailed forgets that a version was rolled back.
func (s *State) removeFailed(version string) {
	kept := s.Refused[:0]
	for _, f := range s.Refused {
		if f.Version != version {
			kept = append(kept, f)
		}
	}
	s.Refused = kept
}

// addFailed remembers that a version was rolled back.
func (s *State) addFailed(f Failed) {
	s.removeFailed(f.Version)
	s.Refused = append(s.Refused, f)
	s.Refused = s.Refused[max(0, len(s.Refused)-maxRefused):]
}

// ErrBusy says that another update of this host is in progress.
var ErrBusy = errors.New("another update of this host is in progress")

// change reads the state, changes it and writes it, under a lock. It does not write if f has changed nothing. The new
// state is durable when change returns.
func change(dir string, f func(*State) error) error {
	unlock, err := lockPath(filepath.Join(dir, lockName), true)
	if err != nil {
		return err
	}
	defer unlock()

	s, err := ReadState(dir)
	if err != nil {
		return err
	}

	before, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the state of updates: %w", err)
	}
	if err := f(&s); err != nil {
		return err
	}

	return s.write(dir, before)
}

// lockPath locks a file for this process. The kernel releases the lock when the process ends, in any way.
func lockPath(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state of updates: %w", err)
	}
	if err := lockFile(f, wait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// write writes the state, unless it is equal to before.
func (s *State) write(dir string, before []byte) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the state of updates: %w", err)
	}
	if string(b) == string(before) {
		return nil
	}
	return atomicfile.Write(filepath.Join(dir, stateFile), append(b, '\n'))
}

func clip(s string) string {
	if len(s) > maxReason {
		return gozzard.Clip(s, maxReason) + "…"
	}
	return s
}
