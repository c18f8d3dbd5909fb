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
	PID string // the content of the lock file; "" if that is not known
}

func (e *InUseError) Error() string {
	if e.PID == "" {
		return fmt.Sprintf("state folder in use by another process, which its lock file does not name: %s", e.Dir)
	}
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
func lockWithRetry(f *os.File, wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(lockEvery) {
		if err := lockFile(f); !errors.Is(err, errLocked) || !time.Now().Before(end) {
			return err
		}
	}
}

// folderLock is the lock on a state folder. It ends when its files are closed, and so also with a crash. There are two
// locks: the one on the folder stays if a person removes the lock file, and agents of earlier versions know only the
// one on the file.
type folderLock struct {
	file   *os.File
	folder *os.File // nil where folders cannot be locked
}

// lockDir locks the folder for this process.
func lockDir(dir string, wait time.Duration) (*folderLock, error) {
	// Lock the folder itself.
	path := filepath.Join(dir, lockName)
	l := &folderLock{}
	var err error
	if l.folder, err = lockFolder(dir, wait); err != nil {
		return nil, lockError(dir, path, err)
	}

	// Lock the file in it.
	if l.file, err = lockPath(path, wait); err != nil {
		_ = l.close()
		return nil, lockError(dir, path, err)
	}

	// Write our pid. It is only for people, so a full disk does not stop the agent.
	err = l.file.Truncate(0)
	if err == nil {
		_, err = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil && !isNoSpace(err) {
		_ = l.close()
		return nil, lockError(dir, path, err)
	}
	return l, nil
}

// lockPath opens and locks a file.
func lockPath(path string, wait time.Duration) (*os.File, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockWithRetry(f, wait); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// lockError explains why a folder could not be locked. The pid of the other process is only for the message.
func lockError(dir, path string, err error) error {
	if !errors.Is(err, errLocked) {
		return fmt.Errorf("cannot lock state folder %s: %w", dir, err)
	}
	b, _ := os.ReadFile(path)
	return &InUseError{Dir: dir, PID: strings.TrimSpace(string(b[:min(len(b), 20)]))}
}

// holds reports whether this is the lock of the folder that is at the path now.
func (l *folderLock) holds(dir string) bool {
	if l.folder != nil && !sameFile(l.folder, dir) {
		return false
	}
	return sameFile(l.file, filepath.Join(dir, lockName))
}

func (l *folderLock) close() (err error) {
	if l.file != nil {
		err = l.file.Close()
	}
	if l.folder != nil {
		err = errors.Join(err, l.folder.Close())
	}
	return err
}

// sameFile reports whether the open file is the one at the path.
func sameFile(f *os.File, path string) bool {
	open, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(open, there)
}

// unnamedHolder stands for the pid of a process that the lock file does not name.
const unnamedHolder = "?"

// Holder is the pid of the process that uses a state folder, "?" if it is not known, and "" if no process uses it or the
// folder cannot be examined. Nothing is made.
func Holder(dir string) string {
	f, err := lockFolder(dir, 0)
	switch {
	case err == nil && f != nil:
		_ = f.Close() // gives the lock back
		return ""
	case !errors.Is(err, errLocked):
		return ""
	}
	inUse, ok := errors.AsType[*InUseError](lockError(dir, filepath.Join(dir, lockName), err))
	if !ok || inUse.PID == "" {
		return unnamedHolder
	}
	return inUse.PID
}
