//go:build windows

package journal

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// checkOwner does nothing: the access list of the folder, which the installer sets, decides which users can write.
func checkOwner(string, fs.FileInfo) error { return nil }

// lockFile locks one byte far behind the content, so that the pid stays readable.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// isReadOnly reports whether an error says that nothing can be written to the file system.
func isReadOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// checkWritable does nothing: only an attempt to make a file would show it.
func checkWritable(string) error { return nil }

// replacesOpenFiles says that a file can be renamed over an open one.
const replacesOpenFiles = false

// lockFolder does nothing: on this system an open lock file cannot be removed.
func lockFolder(string, time.Duration) (*os.File, error) { return nil, nil }
