//go:build linux

package identity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestFrontDoorElsewhere runs the scripts of the table "The front door" in docs/faults.md as people run them on other machines:
// by an ordinary account without control groups, and by root where there is only version 1. TestScripts runs them in the
// environment of the tests themselves.
func TestFrontDoorElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: TestScripts has run these scripts as an ordinary account")
	}
	t.Parallel()
	names := frontDoorScripts(t)

	// Put the scripts and their program where every account can read them.
	dir, err := os.MkdirTemp("", "gozzard-front-door-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	scripts := filepath.Join(dir, "testdata", "script")
	if err := os.MkdirAll(scripts, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("../../cmd/gozzard/testdata/script", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(scripts, name+".txtar"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "gozzard.test")
	build := exec.Command("go", "test", "-trimpath", "-c", "-o", program, "./cmd/gozzard")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0") // as fleettest builds the program: compiled once
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the scripts: %v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	// Run them.
	for _, e := range environments(t) {
		if e.name == "v2" {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			runFrontDoor(t, e, dir, names)
		})
	}
}

// runFrontDoor runs the scripts in one environment.
func runFrontDoor(t *testing.T, e environment, dir string, names []string) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "gozzard-front-door-"+e.name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	ft.Chown(t, tmp, e.account)

	args := append(e.wrap(t, ""), filepath.Join(dir, "gozzard.test"), "-test.run", "^TestScripts$", "-test.v",
		"-test.parallel", "4")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range names {
		if !strings.Contains(string(out), "--- PASS: TestScripts/"+name+" ") {
			t.Errorf("the script %s did not run to its end", name)
		}
	}
}

// frontDoorScripts are the scripts that the table names.
func frontDoorScripts(t *testing.T) (names []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(b), "\n## The front door\n")
	if !found {
		t.Fatal("docs/faults.md has no section The front door")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("`script ([a-z0-9_-]+)`").FindAllStringSubmatch(section, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	if len(names) < 3 {
		t.Fatalf("the table names only the scripts %q", names)
	}
	return names
}
