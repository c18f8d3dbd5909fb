package main

import (
	"fmt"
	"path/filepath"
)

// makeAbsolute replaces relative paths by absolute ones. An empty path stays empty. The check that no other account
// can write a file goes through all its folders from the root, so it needs an absolute path.
func makeAbsolute(paths ...*string) error {
	for _, p := range paths {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", *p, err)
		}
		*p = abs
	}
	return nil
}
