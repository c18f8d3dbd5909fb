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
