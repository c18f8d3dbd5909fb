package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Ring is a text file of lines that never takes more than a given size: when half of that is full it becomes the
// old half, and the old half before it goes. Lines are not synced to disk: what matters for the agent itself is in
// the journal, this is for people who ask later what was run.
type Ring struct {
	path string
	half int64

	mu     sync.Mutex
	f      *os.File // nil after an error: opened again for the next line
	size   int64
	closed bool
}

// OpenRing opens the file at a path, or makes it, readable by its owner only. The old half is beside it, with ".1"
// at its end.
func OpenRing(path string, most int64) (*Ring, error) {
	r := &Ring{path: path, half: most / 2}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return r, nil
}

// open continues the file. A line that a crash cut off is ended, so that the next one is whole.
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

// Append adds a line, which has no break in it.
func (r *Ring) Append(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int64(len(line)) + 1
	if n > r.half {
		return fmt.Errorf("cannot add a line of %d bytes to %s, which takes %d", n, r.path, r.half)
	}
	if r.closed {
		return fmt.Errorf("cannot write %s: %w", r.path, os.ErrClosed)
	}
	if r.f == nil {
		if err := r.open(); err != nil {
			return fmt.Errorf("cannot open %s: %w", r.path, err)
		}
	}

	if r.size+n > r.half {
		if err := r.turn(); err != nil {
			return fmt.Errorf("cannot turn %s over: %w", r.path, err)
		}
	}

	written, err := r.f.Write(append(line, '\n'))
	r.size += int64(written)

	if err != nil { // a part of the line may be there: it is ended when the file is opened again
		err = errors.Join(err, r.f.Close())
		r.f = nil
		return fmt.Errorf("cannot write %s: %w", r.path, err)
	}

	return nil
}

// turn begins a new half.
func (r *Ring) turn() error {
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

// Close gives the file free.
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
