package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Version returns the format version of the journal in a folder without opening the journal. It returns 0 if there is
// none or its beginning is damaged.
func Version(dir string) (uint32, error) {
	f, err := os.Open(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the journal: %w", err)
	}
	defer f.Close()

	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("cannot read the journal: %w", err)
	}

	_, version, _ := decodeHeader(head[:n])
	return version, nil
}
