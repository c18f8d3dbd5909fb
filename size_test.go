package gozzard_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

// maxFileBytes is far above every file that a person writes. What is larger is a program, an archive or a log.
const maxFileBytes = 500_000

// TestNoLargeFiles: programs, packages and logs are made by the Makefile and are not part of the project.
func TestNoLargeFiles(t *testing.T) {
	made := []string{".git", "bin", "dist", "data", "web/node_modules", "internal/console/dist"} // .gitignore has them
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(made, path):
			return fs.SkipDir
		case !d.Type().IsRegular() || slices.Contains([]string{".test", ".out", ".prof"}, filepath.Ext(path)):
			return nil
		}

		info, err := d.Info()
		if err != nil {
			return err
		}
		if files++; info.Size() > maxFileBytes {
			t.Errorf("%s has %d bytes; a file of the project has at most %d", path, info.Size(), maxFileBytes)
		}
		return nil
	})

	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("only %d files were seen", files)
	}
}
