//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// onlyOwner refuses a secret that others can read, or that is not ours.
func onlyOwner(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot look at the secret: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("secret in %s can be read by others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("secret in %s belongs to uid %d, this is uid %d", path, sys.Uid, os.Geteuid())
	}
	return nil
}
