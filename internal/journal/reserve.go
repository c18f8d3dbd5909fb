package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// reserveRetry is how often a lost reserve is tried to be made again.
const reserveRetry = time.Second

// makeReserve sets disk space aside. j.mu is held, or nobody else has j yet.
func (j *Journal) makeReserve() error {
	path := j.path(reserveName)
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == j.o.Reserve {
		j.reserve = true
		return nil
	}

	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return spaceError("cannot make journal reserve", err)
	}

	err = allocate(f, j.o.Reserve)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path)
		return spaceError("cannot make journal reserve", err)
	}

	j.reserve = true
	return nil
}

// haveReserve tries now and then to get the reserve back. j.mu is held.
func (j *Journal) haveReserve() bool {
	if j.reserve || j.o.Reserve < 0 {
		return true
	}
	now := j.o.Now()
	if now.Before(j.retryAt) {
		return false
	}
	j.retryAt = now.Add(reserveRetry)
	return j.makeReserve() == nil
}

// dropReserve gives the reserve up; it reports whether that made room. j.mu is held.
func (j *Journal) dropReserve() bool {
	if !j.reserve {
		return false
	}
	j.reserve = false
	j.retryAt = j.o.Now().Add(reserveRetry)
	if err := os.Remove(j.path(reserveName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.o.Log.Error("cannot give journal reserve up", "dir", j.dir, "error", err)
		return false
	}
	j.o.Log.Error("disk of the state folder is full: only ends of operations are recorded until there is room", "dir",
		j.dir)
	return true
}

// writeZeros takes space where the system has no call for it.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return fmt.Errorf("cannot reserve %d bytes: %w", size, err)
		}
	}
	return nil
}
