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
	lockName   = "update.lock" // held while the state is changed
	busyName   = "update.busy" // held while a release is fetched and put in place
	maxState   = 64 << 10
	maxReason  = 500
	maxRefused = 16
)

// State is what a host remembers of updates.
type State struct {
	Highest string   `json:"highest,omitempty"` // the newest version that a server has welcomed here
	Program string   `json:"program,omitempty"` // the file that the agent runs from
	PID     int      `json:"pid,omitempty"`     // of the agent that started last
	Trial   *Trial   `json:"trial,omitempty"`
	Refused []Failed `json:"refused,omitempty"` // versions that were tried and put back, the newest last
}

// Trial is a new program that has not been welcomed yet.
type Trial struct {
	Version string    `json:"version"`
	From    string    `json:"from"`   // the version before
	Placed  time.Time `json:"placed"` // when its file was put in place
	Starts  int       `json:"starts"`
	Back    string    `json:"back,omitempty"` // why it is being put back
}

// Failed is a version that was put back.
type Failed struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
}

// ReadState reads what the host of a state folder remembers; nothing is an empty state.
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
	b, err := io.ReadAll(io.LimitReader(f, maxState+1))
	var s State

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

// refused finds why a version was put back, "" when it was not.
func (s *State) refused(version string) string {
	for _, f := range s.Refused {
		if f.Version == version {
			return f.Reason
		}
	}
	return ""
}

func (s *State) forget(version string) {
	kept := s.Refused[:0]
	for _, f := range s.Refused {
		if f.Version != version {
			kept = append(kept, f)
		}
	}
	s.Refused = kept
}

func (s *State) refuse(f Failed) {
	s.forget(f.Version)
	s.Refused = append(s.Refused, f)
	s.Refused = s.Refused[max(0, len(s.Refused)-maxRefused):]
}

// ErrBusy says that another update of this host is under way.
var ErrBusy = errors.New("another update of this host is under way")

// change reads the state, changes it and writes it, with nobody else at it. What f leaves as it was is not written.
// It is durable when this returns.
func change(dir string, f func(*State) error) error {
	unlock, err := take(filepath.Join(dir, lockName), true)
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

// take locks a file for this process; the kernel gives it back when the process ends, however it ends.
func take(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state of updates: %w", err)
	}
	if err := lockFile(f, wait); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

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
