package release

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// Repository stores the programs of releases in a folder. The name of each file is its SHA-256.
type Repository struct{ dir string }

// OpenRepository opens a folder, creates it if there is none, and removes interrupted uploads.
func OpenRepository(dir string) (*Repository, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder of releases: %w", err)
	}
	if err := atomicfile.RemoveLeftovers(dir); err != nil {
		return nil, fmt.Errorf("cannot remove interrupted uploads from the folder of releases: %w", err)
	}

	return &Repository{dir}, nil
}

// Put stores a program if it is the one that the manifest names. The program is durable when Put returns.
func (s *Repository) Put(f File, from io.Reader) error {
	return atomicfile.WriteFrom(filepath.Join(s.dir, f.SHA256), func(w io.Writer) error { return f.Copy(w, from) })
}

// Open opens a stored program; fs.ErrNotExist if it is not stored. f must be of a parsed manifest, because its digest
// becomes a file name.
func (s *Repository) Open(f File) (*os.File, error) { return os.Open(filepath.Join(s.dir, f.SHA256)) }

// Has reports whether a program is stored.
func (s *Repository) Has(f File) bool {
	st, err := os.Stat(filepath.Join(s.dir, f.SHA256))
	return err == nil && st.Size() == f.Size
}

// Remove removes a program. It is not an error if the program is not stored.
func (s *Repository) Remove(f File) error {
	if err := os.Remove(filepath.Join(s.dir, f.SHA256)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove %s: %w", f.Name, err)
	}
	return nil
}
