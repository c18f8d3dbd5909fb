//go:build unix

package selfupdate

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// InPlace says that a program can take over its process on this system.
const InPlace = true

// lockFile locks a file. Without wait it returns ErrBusy if the file is locked.
func lockFile(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}

	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		}
		return fmt.Errorf("cannot lock the state of updates: %w", err)
	}
}
