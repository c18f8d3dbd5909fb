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

// InUseError says that another process uses the folder.
type InUseError struct {
	Dir string
	PID string // the content of the lock file
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("state folder in use by pid %s: %s", e.PID, e.Dir)
}

var errLocked = errors.New("locked")

// makeDir makes the folder if it does not exist. It rejects a folder that other users can write to, because they could
// start processes through it.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the state folder: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use the state folder: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("cannot use state folder %s: not a folder", dir)
	}
	return checkOwner(dir, st)
}

// checkFile rejects a file that does not belong to this user. It is no error if the file does not exist.
func checkFile(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot use the journal: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("cannot use journal %s: not a regular file", path)
	}
	return checkOwner(path, st)
}

// When a program is killed while it starts a child, the child has the lock until it has executed its own program. So
// the lock of a dead program may exist for a moment, and longer on a busy machine.
const (
	lockWait  = 2 * time.Second
	lockEvery = 10 * time.Millisecond
)

// lockWithRetry locks the file, and retries for a while if it is locked.
func lockWithRetry(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockEvery) {
		if err := lockFile(f); !errors.Is(err, errLocked) || !time.Now().Before(end) {
			return err
		}
	}
}

// lockDir locks the folder for this process. The lock ends when the file is closed, and so also with a crash.
func lockDir(dir string) (*os.File, error) {
	// Open the lock file.
	path := filepath.Join(dir, lockName)
	if err := checkFile(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state folder: %w", err)
	}

	// Lock it. The pid of the other process is only for the message.
	if err := lockWithRetry(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errLocked) {
			b, _ := os.ReadFile(path)
			return nil, &InUseError{Dir: dir, PID: strings.TrimSpace(string(b[:min(len(b), 20)]))}
		}
		return nil, fmt.Errorf("cannot lock state folder %s: %w", dir, err)
	}

	// Write our pid. It is only for people, so a full disk does not stop the agent.
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil && !isNoSpace(err) {
		_ = f.Close()
		return nil, fmt.Errorf("cannot lock state folder %s: %w", dir, err)
	}
	return f, nil
}
