package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// reserveRetry is how often the journal tries to make a lost reserve again.
const reserveRetry = time.Second

// makeReserve allocates the disk space of the reserve. The caller holds j.mu, or no other goroutine has j yet.
func (j *Journal) makeReserve() error {
	path := j.path(reserveName)
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == j.o.Reserve {
		j.hasReserve = true
		return nil
	}

	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return spaceError("cannot make the reserve of the journal", err)
	}

	err = allocate(f, j.o.Reserve)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path)
		return spaceError("cannot make the reserve of the journal", err)
	}

	j.hasReserve = true
	return nil
}

// ensureReserve reports whether there is a reserve. From time to time it tries to make a lost one again. The caller
// holds j.mu.
func (j *Journal) ensureReserve() bool {
	if j.hasReserve || j.o.Reserve < 0 {
		return true
	}

	now := j.o.Now()
	if now.Before(j.retryAt) {
		return false
	}
	j.retryAt = now.Add(reserveRetry)
	return j.makeReserve() == nil
}

// dropReserve deletes the reserve. It reports whether that freed space. The caller holds j.mu.
func (j *Journal) dropReserve() bool {
	if !j.hasReserve {
		return false
	}

	j.hasReserve = false
	j.retryAt = j.o.Now().Add(reserveRetry)
	if err := os.Remove(j.path(reserveName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.o.Log.Error("cannot delete the reserve of the journal", "dir", j.dir, "err", err)
		return false
	}

	j.o.Log.Error("disk of the state folder is full: only the ends of operations are recorded until there is room",
		"dir", j.dir)
	return true
}

// writeZeros allocates space by writing, on systems that have no call for it.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return fmt.Errorf("cannot reserve %d bytes: %w", size, err)
		}
	}
	return nil
}
