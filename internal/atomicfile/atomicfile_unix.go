//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Check returns an error if other accounts can read or write a file, or if the file belongs to another account.
func Check(path string) error {
	owner, err := private(path)
	if err == nil && owner != os.Geteuid() {
		err = fmt.Errorf("%s belongs to uid %d, but this program runs as uid %d", path, owner, os.Geteuid())
	}
	return err
}

// CheckOwned is Check, but root also accepts a file of the account that its folder belongs to, such as the join secret in
// the data folder of a server that has its own account.
func CheckOwned(path string) error {
	owner, err := private(path)
	if err != nil || os.Geteuid() != 0 {
		return Check(path)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if sys, ok := folder.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != owner || folder.Mode().Perm()&0o022 != 0 {
		return Check(path)
	}
	return nil
}

// private returns the owner of a file that no other account can read or write.
func private(path string) (owner int, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return 0, fmt.Errorf("%s can be read by others (mode %04o); run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid), nil
	}
	return os.Geteuid(), nil
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", dir, err)
	}
	return nil
}
