package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// maxDamaged is how many side files with damaged bytes are kept for people to examine.
const maxDamaged = 8

// load reads the file, repairs it and opens it for writing. Everything in it is durable then.
func (j *Journal) load() ([]Record, error) {
	// Delete what a compaction left that was interrupted by a crash.
	if err := os.Remove(j.path(newName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot clean the state folder: %w", err)
	}

	// Read the file, or make a new one.
	if err := checkFile(j.path(fileName)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(j.path(fileName))
	if errors.Is(err, fs.ErrNotExist) {
		j.o.Log.Info("made a new journal", "dir", j.dir)
		return nil, j.install(header{id: newID()}, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}

	// Reject a file of a newer program.
	_, version, _ := decodeHeader(data)
	if j.o.KeepVersion && version > 0 {
		j.version = version
	}
	if version > FormatVersion {
		return nil, &NewerError{Path: j.path(fileName), Version: version}
	}

	// Continue it.
	s := scan(data)
	if s.lost {
		err = j.keepValidPrefix(&s, data)
	} else {
		err = j.resume(&s, len(data), version)
	}
	return s.records, err
}

// resume continues a journal that has lost nothing. It cuts off a half-written record. It syncs the file, because some
// records may be only in the page cache, and the caller acts on them.
func (j *Journal) resume(s *scanned, size int, version uint32) error {
	f, err := os.OpenFile(j.path(fileName), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot open the journal: %w", err)
	}
	j.setID(s.id)
	j.onDisk = s.id
	j.setFile(f, int64(s.end), s.last())

	// Cut off a half-written record.
	if s.end < size {
		j.o.Log.Info("cut off a half-written record", "dir", j.dir, "lsn", s.last()+1, "bytes", size-s.end)
		if err := f.Truncate(int64(s.end)); err != nil {
			return fmt.Errorf("cannot cut off a half-written record: %w", err)
		}
	}

	// Write the new version. The sixteen bytes are in one sector, so they are written completely or not at all.
	if version < j.version {
		if _, err := f.WriteAt(s.header.encode(j.version)[:preambleEnd], 0); err != nil {
			return fmt.Errorf("cannot write the new version of the journal: %w", err)
		}
	}

	// Make everything durable.
	if j.o.NoSync {
		return nil
	}
	if err := j.fdatasync(f); err != nil {
		return fmt.Errorf("cannot sync the journal: %w", err)
	}
	if _, err := f.WriteAt(encodeMark(j.onDisk, j.synced.Load()), markAt); err != nil {
		return fmt.Errorf("cannot write the mark of the journal: %w", err)
	}
	return nil
}

// keepValidPrefix keeps the valid part of a damaged file under a new id and saves the rest in a side file. It replaces
// the old file in one step, so after a crash in between the next start does the same again.
func (j *Journal) keepValidPrefix(s *scanned, data []byte) error {
	// Save the damaged part, or the whole file if its header is damaged.
	bad := data[s.end:]
	if _, _, ok := decodeHeader(data); !ok {
		bad = data
	}
	name, err := j.saveDamaged(bad)
	if err != nil {
		return err
	}

	// Continue with the valid part.
	h := header{id: newID(), base: s.base, mark: s.last()}
	j.o.Log.Error("journal was damaged: kept its valid part under a new id", "dir", j.dir,
		"records", len(s.records), "lsn", s.last(), "synced", s.mark, "damaged", name)
	return j.install(h, data[min(headerSize, s.end):s.end])
}

// saveDamaged saves damaged bytes for people to examine. It deletes the oldest side file if there are too many.
func (j *Journal) saveDamaged(bad []byte) (string, error) {
	for i := maxDamaged; i > 1; i-- {
		older, newer := j.path(damagedName+"."+strconv.Itoa(i)), j.path(damagedName+"."+strconv.Itoa(i-1))
		if err := os.Rename(newer, older); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot save the damaged journal: %w", err)
		}
	}
	name := damagedName + ".1"
	return name, j.ReplaceFile(name, bad)
}

// install makes a new journal file from a header and raw records, durably, and opens it.
func (j *Journal) install(h header, frames []byte) error {
	if err := j.writeNew(h, frames); err != nil {
		return err
	}
	f, err := j.renameNew()
	if err != nil {
		return err
	}

	last := h.base
	for at := 0; at < len(frames); {
		r, n, _ := decodeFrame(frames[at:])
		last, at = r.LSN, at+n
	}

	j.setID(h.id)
	j.onDisk = h.id
	j.setFile(f, int64(headerSize+len(frames)), last)
	return nil
}

// writeNew writes and syncs a journal file beside the present one.
func (j *Journal) writeNew(h header, frames []byte) error {
	f, err := os.OpenFile(j.path(newName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return spaceError("cannot make a new journal", err)
	}

	_, err = f.WriteAt(append(h.encode(j.version), frames...), 0)
	if err == nil && !j.o.NoSync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(j.path(newName))
		return spaceError("cannot write the new journal", err)
	}
	return nil
}

// renameNew renames the new file over the present one. Where the system cannot replace an open file, it closes the
// present file before, otherwise after everything else has worked.
func (j *Journal) renameNew() (*os.File, error) {
	if j.file != nil && !replacesOpenFiles {
		if err := j.file.Close(); err != nil {
			return nil, fmt.Errorf("cannot close the old journal: %w", err)
		}
	}

	// Replace the file.
	if err := os.Rename(j.path(newName), j.path(fileName)); err != nil {
		return nil, fmt.Errorf("cannot replace the old journal: %w", err)
	}
	if !j.o.NoSync {
		if err := atomicfile.SyncFolder(j.dir); err != nil {
			return nil, err
		}
	}

	f, err := os.OpenFile(j.path(fileName), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the new journal: %w", err)
	}
	if j.file != nil && replacesOpenFiles {
		_ = j.file.Close() // nothing in it is needed any more
	}
	return f, nil
}

// setFile makes f the open file.
func (j *Journal) setFile(f *os.File, end int64, last uint64) {
	j.file, j.end, j.ahead, j.written = f, end, end, last
	j.synced.Store(last)
}

// spaceError wraps an error so that callers recognise a full disk as ErrNoSpace.
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
