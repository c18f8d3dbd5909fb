package release

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Repository keeps programs of releases in a folder, each under its SHA-256.
type Repository struct{ dir string }

// OpenRepository makes the folder when there is none.
func OpenRepository(dir string) (*Repository, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of releases: %w", err)
	}

	left, err := filepath.Glob(filepath.Join(dir, ".part-*"))
	if err != nil {
		return nil, err
	}

	for _, path := range left { // of an upload that was cut off
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot tidy the folder of releases: %w", err)
		}
	}

	return &Repository{dir}, nil
}

// Put keeps a program, if it is the one that the manifest names. It is durable when this returns.
func (s *Repository) Put(f File, from io.Reader) error {
	out, err := os.CreateTemp(s.dir, ".part-*")
	if err != nil {
		return fmt.Errorf("cannot keep %s: %w", f.Name, err)
	}
	err = f.Copy(out, from)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), filepath.Join(s.dir, f.SHA256))
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return s.sync()
}

// Open gives a program that is kept; fs.ErrNotExist when it is not. f must be of a manifest that was parsed: its
// digest becomes a name.
func (s *Repository) Open(f File) (*os.File, error) { return os.Open(filepath.Join(s.dir, f.SHA256)) }

// Has reports whether a program is kept.
func (s *Repository) Has(f File) bool {
	st, err := os.Stat(filepath.Join(s.dir, f.SHA256))
	return err == nil && st.Size() == f.Size
}

// Remove gives the room of a program free.
func (s *Repository) Remove(f File) error {
	if err := os.Remove(filepath.Join(s.dir, f.SHA256)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove %s: %w", f.Name, err)
	}
	return nil
}

func (s *Repository) sync() error {
	if runtime.GOOS == "windows" { // has no such call, and needs none
		return nil
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
