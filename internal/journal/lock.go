package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// InUseError says that another process has the folder.
type InUseError struct {
	Dir string
	PID string // as the other wrote it
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("state folder in use by pid %s: %s", e.PID, e.Dir)
}

var errLocked = errors.New("locked")

// makeDir makes the folder when it is missing and refuses one that others could write to: whoever can write there
// can start processes.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make state folder: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use state folder: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("cannot use state folder %s: not a folder", dir)
	}
	return checkOwner(dir, st)
}

// checkFile refuses a journal that is not ours. A missing one is fine.
func checkFile(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot use journal: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("cannot use journal %s: not a regular file", path)
	}
	return checkOwner(path, st)
}

// A program that was killed while it started another holds its lock until that one has become what it is to be: the
// file is its own until then. So the lock of a dead program may be there for a moment, longer on a busy machine.
const (
	lockWait  = 2 * time.Second
	lockEvery = 10 * time.Millisecond
)

func lockPatiently(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockEvery) {
		if err := lockFile(f); !errors.Is(err, errLocked) || !time.Now().Before(end) {
			return err
		}
	}
}

// lockDir takes the folder for this process. The lock ends with the file, so also with a crash.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	if err := checkFile(path); err != nil {
		return nil, err
	}

	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock state folder: %w", err)
	}

	if err := lockPatiently(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errLocked) {
			b, _ := os.ReadFile(path) // only for the message
			return nil, &InUseError{Dir: dir, PID: strings.TrimSpace(string(b[:min(len(b), 20)]))}
		}
		return nil, fmt.Errorf("cannot lock state folder %s: %w", dir, err)
	}

	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil && !isNoSpace(err) { // the pid is only for people; a full disk must not keep the agent from its work
		_ = f.Close()
		return nil, fmt.Errorf("cannot lock state folder %s: %w", dir, err)
	}

	return f, nil
}
