//go:build !windows

package sqlstore

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file for this process alone. It reports false when another process has the lock. The kernel releases
// the lock when the process ends, however it ends.
func lockFile(f *os.File) (locked bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// lockFolder locks a folder for this process alone. It returns nil when another process has the lock. Some network file
// systems cannot lock a folder; there the lock file alone counts.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}

	locked, err := lockFile(f)
	switch {
	case err != nil && (errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOLCK)):
		return f, nil
	case err != nil || !locked:
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isDiskFull reports whether an error of a file operation means that the disk, or the quota, is full.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// syncDir makes the name of a new file in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
