package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// maxDamaged bounds the side files kept for people to look at.
const maxDamaged = 8

// load reads the file, makes it whole and leaves it open at its end, everything in it durable.
func (j *Journal) load() ([]Record, error) {
	// of a compaction that a crash ended
	if err := os.Remove(j.path(newName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot clear state folder: %w", err)
	}
	if err := checkFile(j.path(fileName)); err != nil {
		return nil, err
	}

	data, err := os.ReadFile(j.path(fileName))
	if errors.Is(err, fs.ErrNotExist) {
		j.o.Log.Info("new journal", "dir", j.dir)
		return nil, j.install(header{id: newID()}, nil)
	}

	if err != nil {
		return nil, fmt.Errorf("cannot read journal: %w", err)
	}

	_, version, _ := decodeHeader(data)
	if version > FormatVersion {
		return nil, &NewerError{Path: j.path(fileName), Version: version}
	}

	s := scan(data)
	if s.lost {
		err = j.salvage(&s, data)
	} else {
		err = j.resume(&s, len(data), version)
	}

	return s.records, err
}

// resume goes on with a journal that has lost nothing, cutting off what a crash left half-written. What is only in
// the page cache is synced before anybody acts on it.
func (j *Journal) resume(s *scanned, size int, version uint32) error {
	f, err := os.OpenFile(j.path(fileName), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot open journal: %w", err)
	}

	j.id = s.id
	j.use(f, int64(s.end), s.last())

	if s.end < size {
		j.o.Log.Info("cut off a half-written record", "dir", j.dir, "lsn", s.last()+1, "bytes", size-s.end)
		if err := f.Truncate(int64(s.end)); err != nil {
			return fmt.Errorf("cannot cut off a half-written record: %w", err)
		}
	}

	if version < FormatVersion { // sixteen bytes of one sector: there as a whole or not at all
		if _, err := f.WriteAt(s.header.encode()[:preambleEnd], 0); err != nil {
			return fmt.Errorf("cannot mark journal with its new version: %w", err)
		}
	}

	if j.o.NoSync {
		return nil
	}
	if err := j.fdatasync(f); err != nil {
		return fmt.Errorf("cannot sync journal: %w", err)
	}
	if _, err := f.WriteAt(encodeMark(j.id, j.synced.Load()), markAt); err != nil {
		return fmt.Errorf("cannot mark journal: %w", err)
	}

	return nil
}

// salvage keeps the valid prefix under a new id and what follows it in a side file. The old file is replaced at
// once, so a crash in between only repeats this.
func (j *Journal) salvage(s *scanned, data []byte) error {
	bad := data[s.end:]

	if _, _, ok := decodeHeader(data); !ok {
		bad = data
	}

	name, err := j.quarantine(bad)
	if err != nil {
		return err
	}

	h := header{id: newID(), base: s.base, mark: s.last()}
	j.o.Log.Error("journal was damaged: kept its valid part under a new id", "dir", j.dir, "records", len(s.records),
		"lsn", s.last(),
		"synced", s.mark, "damaged", name)
	return j.install(h, data[min(headerSize, s.end):s.end])
}

// quarantine keeps damaged bytes for people; the oldest files make room.
func (j *Journal) quarantine(bad []byte) (string, error) {
	for i := maxDamaged; i > 1; i-- {
		older, newer := j.path(damagedName+"."+strconv.Itoa(i)), j.path(damagedName+"."+strconv.Itoa(i-1))
		if err := os.Rename(newer, older); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot keep damaged journal: %w", err)
		}
	}
	name := damagedName + ".1"
	return name, j.ReplaceFile(name, bad)
}

// install makes a file of a header and raw records the journal, durably, and goes on with it.
func (j *Journal) install(h header, frames []byte) error {
	if err := j.build(h, frames); err != nil {
		return err
	}

	f, err := j.swap()
	if err != nil {
		return err
	}

	last := h.base
	for at := 0; at < len(frames); {
		r, n, _ := decodeFrame(frames[at:])
		last, at = r.LSN, at+n
	}

	j.id = h.id
	j.use(f, int64(headerSize+len(frames)), last)
	return nil
}

// build writes and syncs a journal file beside the present one.
func (j *Journal) build(h header, frames []byte) error {
	f, err := os.OpenFile(j.path(newName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return spaceError("cannot make journal", err)
	}

	_, err = f.WriteAt(append(h.encode(), frames...), 0)
	if err == nil && !j.o.NoSync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(j.path(newName))
		return spaceError("cannot write new journal", err)
	}

	return nil
}

// swap puts the new file in the place of the old one, which is closed first: not every system replaces an open file.
func (j *Journal) swap() (*os.File, error) {
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return nil, fmt.Errorf("cannot close old journal: %w", err)
		}
	}

	if err := os.Rename(j.path(newName), j.path(fileName)); err != nil {
		return nil, fmt.Errorf("cannot put new journal in place: %w", err)
	}
	if !j.o.NoSync {
		if err := atomicfile.SyncFolder(j.dir); err != nil {
			return nil, err
		}
	}

	f, err := os.OpenFile(j.path(fileName), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open new journal: %w", err)
	}

	return f, nil
}

func (j *Journal) use(f *os.File, end int64, last uint64) {
	j.file, j.end, j.written = f, end, last
	j.synced.Store(last)
}

// spaceError makes a full disk recognisable whatever failed by it.
func spaceError(what string, err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%s: %w: %w", what, ErrNoSpace, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ReplaceFile writes a file beside the journal so that after any crash it is there as a whole, old or new.
func (j *Journal) ReplaceFile(name string, data []byte) error {
	write := atomicfile.Write
	if j.o.NoSync {
		write = atomicfile.WriteUnsynced
	}
	if err := write(j.path(name), data); err != nil {
		return spaceError("cannot write "+name, err)
	}
	return nil
}
