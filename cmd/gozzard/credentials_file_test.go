package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestPlantedCredentials: a file of another account at a usual place is rejected, and so is one that others can write.
// The place of the system belongs to the account of the server there.
func TestPlantedCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dev.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, system := []usualPlace{{file, false}}, []usualPlace{{file + ".none", false}, {file, true}}
	read := func(places []usualPlace) error {
		_, _, _, err := findCredentials(places)
		return err
	}

	if err := read(relative); err != nil {
		t.Errorf("a file of the caller: %v", err)
	}
	if err := read(relative[:0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no place: %v", err)
	}

	// Another account has made it. Only root can give a file away.
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 65534, -1); err != nil {
			t.Fatal(err)
		}
		if err := read(relative); !errors.Is(err, errForeign) {
			t.Errorf("a file of another account: %v", err)
		}
	}
	if err := read(system); err != nil {
		t.Errorf("the place of the system: %v", err)
	}

	// Others can write it.
	if err := os.Chmod(file, 0o620); err != nil {
		t.Fatal(err)
	}
	if err := read(relative); !errors.Is(err, errForeign) {
		t.Errorf("a file that others can write: %v", err)
	}
}
