package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Version returns the format version of the state in a folder, which the journal has, without opening the journal. It
// returns 0 if there is no journal or its beginning is damaged.
func Version(dir string) (uint32, error) {
	head, err := readHead(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, version, _ := decodeHeader(head)
	return version, nil
}

// CheckVersion returns a NewerError if a newer program has written the state in a folder. It must be called before any
// other file of the folder is used: the version of the journal is that of the whole folder.
func CheckVersion(dir string) error {
	version, err := Version(dir)
	if err != nil {
		return err
	}
	if version > FormatVersion {
		return &NewerError{Path: filepath.Join(dir, fileName), Version: version}
	}
	return nil
}

// readHead reads the beginning of a journal.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer f.Close()

	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	return head[:n], nil
}

// RaiseVersion gives the file the present format version, durably. After that, an older program rejects it.
func (j *Journal) RaiseVersion() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || j.version == FormatVersion {
		return j.err
	}

	for j.syncing {
		j.syncEnded.Wait()
	}
	if _, err := j.file.WriteAt(header{}.encode(FormatVersion)[:preambleEnd], 0); err != nil {
		return fmt.Errorf("cannot write the new version of the journal: %w", err)
	}
	if !j.o.NoSync {
		if err := j.fdatasync(j.file); err != nil {
			return j.fail(fmt.Errorf("cannot sync the journal in %s: %w", j.dir, err))
		}
	}
	j.version = FormatVersion
	return nil
}
