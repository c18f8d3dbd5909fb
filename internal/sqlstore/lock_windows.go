package sqlstore

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks a file for this process alone. It reports false when another process has the lock. The system releases
// the lock when the process ends. It locks a byte far behind the pid in the file, because other processes cannot read
// locked bytes.
func lockFile(f *os.File) (locked bool, err error) {
	at := &windows.Overlapped{OffsetHigh: 1}
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// lockFolder locks nothing: Windows does not remove a file that is open, so the lock file is enough.
func lockFolder(dir string) (*os.File, error) { return os.Open(dir) }

// isDiskFull reports whether an error of a file operation means that the disk, or the quota, is full.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// syncDir does nothing: Windows cannot flush directories, and its file system journals names.
func syncDir(string) error { return nil }
