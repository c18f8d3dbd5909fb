//go:build unix

package seal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// onlyOwner refuses a key that others can read or write, or that is somebody else's.
func onlyOwner(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot look at the key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("key in %s is open to others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("key in %s belongs to uid %d, this is uid %d", path, sys.Uid, os.Geteuid())
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot sync folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("cannot sync folder: %w", err)
	}
	return nil
}
