package auditexport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/atomicfile"
)

// lastLine is how much of the end of a file is read to find its last line. A message is much shorter.
const lastLine = 1 << 20

// File appends rows to a file of JSON lines. It opens the file again when another program has moved it away, so that
// logrotate needs no signal.
type File struct {
	path string
	size int64 // at which the file is moved away; 0: never
	keep int   // files that were moved away

	f    *os.File
	have int64             // bytes in f
	last gozzard.AuditHead // the last row in f; zero in a new file
}

// NewFile makes a File. Nothing is written before Send.
func NewFile(path string, size int64, keep int) (*File, error) {
	if size < 0 || keep < 1 || keep > 10_000 {
		return nil, errors.New("--audit-file-size must not be below 0, --audit-file-keep must be from 1 to 10000")
	}
	return &File{path: path, size: size, keep: keep}, nil
}

// Close closes the file.
func (s *File) Close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	return err
}

// Send appends a batch. The rows are on the disk when it returns.
func (s *File) Send(_ context.Context, list []Message) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := s.append(list); err != nil {
		// What is in the file now is not known: look at it again.
		return errors.Join(fmt.Errorf("cannot write %s: %w", s.path, err), s.Close())
	}
	return s.rotate()
}

// append writes the rows that the file does not have yet. After a restart it may have some: they were written, and the
// server was killed before it stored the position.
func (s *File) append(list []Message) error {
	var b bytes.Buffer
	for i := range list {
		if list[i].Seq <= s.last.Seq {
			if list[i].Seq == s.last.Seq && list[i].Hash != s.last.Hash {
				return fmt.Errorf("its row %d has another hash than the record: the record was replaced or restored. "+
					"Move the file away", s.last.Seq)
			}
			continue
		}
		b.Write(list[i].JSON)
		b.WriteByte('\n')
	}

	if _, err := s.f.Write(b.Bytes()); err != nil {
		return err
	}
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.have += int64(b.Len())
	if end := list[len(list)-1]; end.Seq > s.last.Seq {
		s.last = gozzard.AuditHead{Seq: end.Seq, Hash: end.Hash}
	}
	return nil
}

// open opens the file, unless it is open and still at its place.
func (s *File) open() error {
	if s.f != nil {
		mine, err := s.f.Stat()
		there, err2 := os.Stat(s.path)
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			return nil
		}
		if err := s.Close(); err != nil {
			return fmt.Errorf("cannot close the moved file %s: %w", s.path, err)
		}
	}

	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("cannot open the file of the audit export: %w", err)
	}
	if err := s.resume(f); err != nil {
		return errors.Join(err, f.Close())
	}
	s.f = f
	return nil
}

// resume finds the last row of a file and removes a line that was not written to its end.
func (s *File) resume(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", s.path)
	}
	s.have, s.last = info.Size(), gozzard.AuditHead{}

	// Read its end.
	from := max(0, s.have-lastLine)
	end, err := io.ReadAll(io.NewSectionReader(f, from, s.have-from))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", s.path, err)
	}
	whole := bytes.LastIndexByte(end, '\n') + 1
	if whole == 0 && from > 0 {
		return fmt.Errorf("%s does not have lines of the audit: move it away", s.path)
	}

	// Read the last row before anything is changed: the file may be another one.
	if line := bytes.TrimSuffix(end[:whole], []byte("\n")); len(line) > 0 {
		line = line[bytes.LastIndexByte(line, '\n')+1:]
		if err := json.Unmarshal(line, &s.last); err != nil || s.last.Seq <= 0 {
			return fmt.Errorf("%s does not have lines of the audit: move it away", s.path)
		}
	} else if whole == 0 && len(end) > 0 && end[0] != '{' {
		return fmt.Errorf("%s does not have lines of the audit: move it away", s.path)
	}

	if whole < len(end) {
		s.have = from + int64(whole)
		if err := f.Truncate(s.have); err != nil {
			return fmt.Errorf("cannot remove the half-written last line of %s: %w", s.path, err)
		}
	}
	return nil
}

// rotate moves a large file away: FILE.1 is the newest of those, and the oldest is removed.
func (s *File) rotate() error {
	if s.size == 0 || s.have < s.size {
		return nil
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("cannot close %s: %w", s.path, err)
	}
	name := func(n int) string { return s.path + "." + strconv.Itoa(n) }
	for n := s.keep; n >= 1; n-- {
		from := name(n - 1)
		if n == 1 {
			from = s.path
		}
		if err := os.Rename(from, name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot move %s away: %w", from, err)
		}
	}
	return atomicfile.SyncFolder(filepath.Dir(s.path))
}
