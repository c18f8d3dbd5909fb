package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// The blocks of all processes first go to one file, the spool: one write a minute instead of one for each process. When a
// coarse step is complete, they are moved to the files of their processes. The next run of the agent moves what a crash has
// left there.

const (
	spoolName   = "recent"
	recordSpool = len(fileID{}) + blockBytes
)

// spool is the file with the newest blocks. It exists while there are any. The lock of the disk guards it.
type spool struct {
	dir  *os.Root
	file *os.File // nil without
	size int64
	step int64 // the coarse step of its blocks
}

// openSpool opens what an earlier run has left.
func openSpool(dir *os.Root) (*spool, error) {
	s := &spool{dir: dir}
	err := s.open(os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if s.size, err = s.file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the newest histories: %w", err), s.file.Close())
	}
	return s, nil
}

func (s *spool) open(flags int) (err error) {
	if s.file, err = s.dir.OpenFile(spoolName, flags, 0o600); err != nil {
		s.file = nil
		return fmt.Errorf("cannot open the newest histories: %w", err)
	}
	return nil
}

// close ends the use of the file. Its blocks stay.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// fits reports whether the blocks of some processes can be added: all blocks of a spool are of one coarse step.
func (s *spool) fits(work []batch) bool {
	for i := range work {
		for _, b := range work[i].blocks {
			if s.size == 0 && s.step == 0 {
				s.step = coarseOf(b.number)
			}
			if coarseOf(b.number) != s.step {
				return false
			}
		}
	}
	return true
}

// add writes blocks behind the others. After an error the spool is as it was.
func (s *spool) add(work []batch) (int64, error) {
	if s.file == nil {
		if err := s.open(os.O_RDWR | os.O_CREATE | os.O_TRUNC); err != nil {
			return 0, err
		}
	}
	var all []byte
	for i := range work {
		for _, b := range work[i].blocks {
			all = b.encode(append(all, work[i].id[:]...))
		}
	}
	n, err := s.file.WriteAt(all, s.size)
	if err != nil {
		return 0, fmt.Errorf("cannot write the newest histories: %w", err)
	}
	s.size += int64(n)
	return int64(n), nil
}

// batches returns all blocks, by process. With only it returns the blocks of one process. A block that is damaged is left out.
func (s *spool) batches(only *fileID) ([]batch, error) {
	if s.file == nil {
		return nil, nil
	}
	all := make([]byte, s.size)
	n, err := s.file.ReadAt(all, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the newest histories: %w", err)
	}

	var list []batch
	at := map[fileID]int{}
	for all = all[:n]; len(all) >= recordSpool; all = all[recordSpool:] {
		id := fileID(all[:len(fileID{})])
		if only != nil && id != *only {
			continue
		}
		b, ok := decodeAnyBlock(all[len(id):recordSpool])
		if !ok {
			continue
		}
		i, known := at[id]
		if !known {
			i, at[id] = len(list), len(list)
			list = append(list, batch{id: id})
		}
		list[i].blocks = append(list[i].blocks, b)
		if step := coarseOf(b.number); !slices.Contains(list[i].coarse, step) {
			list[i].coarse = append(list[i].coarse, step)
		}
	}
	return list, nil
}

// clear removes all blocks.
func (s *spool) clear() error {
	err := s.close()
	if s.file != nil {
		err = errors.Join(err, s.dir.Remove(spoolName))
	}
	if s.file, s.size, s.step = nil, 0, 0; err != nil {
		return fmt.Errorf("cannot remove the newest histories: %w", err)
	}
	return nil
}

// moveSpool moves the blocks of the spool to the files of their processes. What cannot be written is lost. The caller holds
// the lock of the disk.
func (s *Store) moveSpool() error {
	list, err := s.spool.batches(nil)
	errs := []error{err}
	for i := range list {
		if !s.has(list[i].id) {
			continue
		}
		n, err := list[i].write(s.dir)
		s.written.Add(n)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, s.spool.clear())...)
}

// has reports whether a process has a history.
func (s *Store) has(id fileID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[id.name()]
}
