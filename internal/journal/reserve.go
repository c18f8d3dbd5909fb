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

// The reserve is a file that is deleted when a vital record has no room. What it frees is free for everybody: a process
// that fills the disk may take it first. So the journal also has headroom: blocks behind its end that belong to the file
// already. Nobody else can take them.

// rank says what a record may use.
type rank uint8

const (
	rankOrdinary rank = iota // nothing that is reserved
	rankEnding               // the first half of the headroom
	rankVital                // everything
)

// aheadStep is what is allocated at once beyond the headroom, so that not every record costs a call.
const aheadStep = 64 << 10

// ensureRoom makes sure that a record of a rank has room, as far as blocks can be allocated. The caller holds j.mu.
func (j *Journal) ensureRoom(r rank, size int64) error {
	// Look at what is allocated.
	headroom := j.o.Reserve / 2
	if headroom < 0 || j.noAhead {
		return nil // the write shows it
	}
	keep := map[rank]int64{rankOrdinary: headroom, rankEnding: headroom / 2}[r]
	if j.ahead >= j.end+size+keep {
		return nil
	}

	// Allocate more.
	err := j.allocateTo(j.end + size + headroom + aheadStep)
	if isNoSpace(err) {
		err = j.allocateTo(j.end + size + keep)
	}
	if r == rankVital && isNoSpace(err) && j.dropReserve() {
		err = j.allocateTo(j.end + size)
	}
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return nil // of other errors the write says more
}

// allocateTo allocates the blocks up to a position. The caller holds j.mu.
func (j *Journal) allocateTo(end int64) error {
	from := max(j.end, j.ahead)
	if end <= from {
		return nil
	}
	err := allocateAhead(j.file, from, end-from)
	if errors.Is(err, errors.ErrUnsupported) {
		j.noAhead = true
		return nil
	}
	if err == nil {
		j.ahead = end
	}
	return err
}

// makeHeadroom allocates the headroom of a new file, if there is room. The caller holds j.mu, or no other goroutine has
// j yet.
func (j *Journal) makeHeadroom() {
	if j.o.Reserve > 0 && !j.noAhead {
		_ = j.allocateTo(j.end + j.o.Reserve/2) // the first record tries again
	}
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
