// Package atomicfile keeps small files that are nobody else's: keys, secrets, identities. They are there whole or
// not at all, also after a power cut.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file in one step, durable when it returns and readable by its owner only.
func Write(path string, b []byte) error { return viaTemp(path, b, os.Rename) }

// Create makes a file that must not exist: of two that try, one gets fs.ErrExist.
func Create(path string, b []byte) error {
	return viaTemp(path, b, func(temp, path string) error {
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

func viaTemp(path string, b []byte, put func(temp, path string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}

	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = put(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Join(err, ignoreMissing(os.Remove(f.Name()))))
	}

	return SyncFolder(filepath.Dir(path))
}

// Replace replaces a file by what depends on its content. Its lock is the file that will take its place, so two of
// them do not lose a change.
func Replace(path string, next func() ([]byte, error)) error {
	lock := path + ".new"
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("somebody else is at it, or was cut off in the middle; if nobody is, remove %s", lock)
	}
	if err != nil {
		return err
	}

	b, err := next()
	if err == nil {
		_, err = f.Write(b)
	}

	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(lock, path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(lock)))
	}

	return SyncFolder(filepath.Dir(path))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
