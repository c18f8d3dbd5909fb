//go:build linux

package fleettest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The versions of the program that ProgramOf builds.
const (
	OldVersion    = "1.0.0"
	NewVersion    = "1.1.0"
	BrokenVersion = "1.2.0" // a release with a real fault, see below
)

// fault replaces a file of the program in the broken release. The agent hangs during its startup, or exits there if the
// file that GOZZARD_BROKEN names says so.
const fault = `//go:build !failpoint

package agentd

import "os"

func failpoint() func(string) {
	if b, _ := os.ReadFile(os.Getenv("GOZZARD_BROKEN")); string(b) == "exit" {
		os.Exit(3)
	}
	select {}
}
`

// versions are built once per test process, in a folder that Main removes.
type versions struct {
	once  sync.Once
	dir   string
	err   error
	built map[string]string
}

var built versions

// ProgramOf is the program with a given version, as in a release.
func ProgramOf(t testing.TB, version string) string {
	t.Helper()
	built.once.Do(func() { built.err = built.build() })
	if built.err != nil {
		t.Fatalf("cannot build the versions of the program: %v", built.err)
	}
	return built.built[version]
}

func (v *versions) build() (err error) {
	if v.dir, err = os.MkdirTemp("", "gozzard-versions-"); err != nil {
		return err
	}

	RemoveAtEnd(v.dir)
	root, err := moduleRoot()
	if err != nil {
		return err
	}

	source := filepath.Join(root, "internal", "agentd", "failpoint_off.go")
	if _, err := os.Stat(source); err != nil { // an overlay of a missing file would change nothing
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(v.dir,
		"fault.go.txt")}})
	if err != nil {
		return err
	}

	for name, text := range map[string][]byte{"fault.go.txt": []byte(fault), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(v.dir, name), text, 0o600); err != nil {
			return err
		}
	}

	v.built = map[string]string{}
	for _, name := range []string{OldVersion, NewVersion, BrokenVersion} {
		flags := []string{"-ldflags", "-s -w -X main.version=" + name, "-o", filepath.Join(v.dir, name)}
		if name == BrokenVersion {
			flags = append(flags, "-overlay", filepath.Join(v.dir, "overlay.json"))
		}
		if err := goBuild(root, false, flags...); err != nil {
			return fmt.Errorf("version %s: %w", name, err)
		}
		v.built[name] = filepath.Join(v.dir, name)
	}

	return nil
}
