// Package atomicfile writes files atomically and, unless asked otherwise, for their owner only. After a crash or a power cut a file has its old
// content or its new one, never a part of either.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file. The new content is durable when Write returns, and only the owner can read it.
func Write(path string, b []byte) error {
	return write(path, content(b), true, os.Rename)
}

// WritePublic is Write for a file that every account may read.
func WritePublic(path string, b []byte) error {
	return write(path, content(b), true, func(temp, path string) error {
		if err := os.Chmod(temp, 0o644); err != nil {
			return err
		}
		return os.Rename(temp, path)
	})
}

// WriteUnsynced is Write without waiting for the disk, for simulations that never read the file after a power cut.
func WriteUnsynced(path string, b []byte) error {
	return write(path, content(b), false, os.Rename)
}

// WriteFrom is Write for content that is made while it is written. When fill fails, the file is left as it was.
func WriteFrom(path string, fill func(w io.Writer) error) error {
	return write(path, fill, true, os.Rename)
}

// Create makes a file that must not exist. If several callers try at once, one succeeds and the others get fs.ErrExist.
func Create(path string, b []byte) error {
	return write(path, content(b), true, func(temp, path string) error {
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	})
}

// RemoveLeftovers removes temporary files that a crash left in a folder. No writer may be active there.
func RemoveLeftovers(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, ".*"+tempMark+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// Probe returns why no file can be written in a folder, nil if one can.
func Probe(dir string) error {
	f, err := os.CreateTemp(dir, ".probe"+tempMark+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// tempMark is in the name of every temporary file.
const tempMark = ".tmp-"

func content(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// write fills a temporary file beside path and puts it in place.
func write(path string, fill func(io.Writer) error, sync bool, put func(temp, path string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+tempMark+"*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}

	err = fill(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = put(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Join(err, ignoreMissing(os.Remove(f.Name()))))
	}

	if !sync {
		return nil
	}
	return SyncFolder(dir)
}

// Replace replaces a file by content that depends on the old one. The file that will take its place is the lock: of two
// callers at once the second is rejected, so no change is lost.
func Replace(path string, next func() ([]byte, error)) error {
	lock := path + ".new"
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot change %s: another command is changing it, or one was interrupted; "+
			"if none is running, remove %s", path, lock)
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
