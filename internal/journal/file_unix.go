//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// checkOwner rejects a file of another user, and one that other users can write to.
func checkOwner(path string, st fs.FileInfo) error {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("cannot use %s: it belongs to user %d, this is user %d", path, sys.Uid, os.Geteuid())
	}
	if st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("cannot use %s: other users can write to it (mode %#o)", path, st.Mode().Perm())
	}
	return nil
}

// lockFile locks a file, or returns errLocked.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// isReadOnly reports whether an error says that nothing can be written to the file system.
func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }

// checkWritable returns why no file can be made in a folder, as far as that shows without making one.
func checkWritable(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write", Path: dir, Err: err}
	}
	return nil
}

// replacesOpenFiles says that a file can be renamed over an open one.
const replacesOpenFiles = true

// lockFolder locks the folder itself, which works even if a person has removed the lock file. It returns nil where the
// file system has no locks on folders.
func lockFolder(dir string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err = lockWithRetry(f, wait); err == nil {
		return f, nil
	}

	_ = f.Close()
	for _, without := range []error{unix.EBADF, unix.EINVAL, unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP} {
		if errors.Is(err, without) {
			return nil, nil
		}
	}
	return nil, err
}
