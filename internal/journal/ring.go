package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Ring is a text file of lines with a maximum size. When half of that size is full, the file becomes the old half, and
// the previous old half is deleted. Lines are not synced to disk. What the agent needs is in the journal; a Ring is
// for people that ask later what was run.
type Ring struct {
	path string
	half int64

	mu     sync.Mutex
	f      *os.File // nil after an error; the next line opens it again
	size   int64
	closed bool
}

// OpenRing opens or makes the file at a path. Only its owner can read it. The old half is beside it, with ".1"
// appended to its name.
func OpenRing(path string, maxSize int64) (*Ring, error) {
	r := &Ring{path: path, half: maxSize / 2}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return r, nil
}

// open continues the file. If a crash cut off the last line, open ends that line, so that the next one is complete.
func (r *Ring) open() error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}

	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, f.Close())
	}

	var last [1]byte
	if size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return errors.Join(err, f.Close())
		}
		if last[0] != '\n' {
			if _, err := f.Write([]byte{'\n'}); err != nil {
				return errors.Join(err, f.Close())
			}
			size++
		}
	}

	r.f, r.size = f, size
	return nil
}

// Append adds a line. The line must not contain a line break.
func (r *Ring) Append(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	// Reject a line that does not fit.
	n := int64(len(line)) + 1
	if n > r.half {
		return fmt.Errorf("cannot add a line of %d bytes to %s, the limit is %d", n, r.path, r.half)
	}

	// Open the file, or begin a new one.
	if r.closed {
		return fmt.Errorf("cannot write %s: %w", r.path, os.ErrClosed)
	}
	if r.f != nil && !sameFile(r.f, r.path) { // it was deleted: lines in it would be lost
		_ = r.f.Close()
		r.f = nil
	}
	if r.f == nil {
		if err := r.open(); err != nil {
			return fmt.Errorf("cannot open %s: %w", r.path, err)
		}
	}
	if r.size+n > r.half {
		if err := r.rotate(); err != nil {
			return fmt.Errorf("cannot rotate %s: %w", r.path, err)
		}
	}

	// Write the line. After an error a part of it may be in the file; open ends it.
	written, err := r.f.Write(append(line, '\n'))
	r.size += int64(written)
	if err != nil {
		err = errors.Join(err, r.f.Close())
		r.f = nil
		return fmt.Errorf("cannot write %s: %w", r.path, err)
	}

	return nil
}

// rotate begins a new half.
func (r *Ring) rotate() error {
	err := r.f.Close()
	r.f = nil
	if err != nil {
		return err
	}
	if err := os.Rename(r.path, r.path+".1"); err != nil {
		return err
	}
	return r.open()
}

// Close closes the file.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.f == nil {
		return nil
	}
	err := r.f.Close()
	r.f = nil
	return err
}
