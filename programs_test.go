package gozzard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// startsProgram is how the tests of a package get the program: from fleettest, or by a build.
var startsProgram = regexp.MustCompile(`"github\.com/gozzard/gozzard/test/(fleettest|console)"|"\./cmd/gozzard"`)

// TestPrograms: the Makefile says of each package whose tests start the program whether they run with the race detector. A new
// package must be in one of its lists, and a list names no package that is gone. What runs inside a test program always has the
// detector: no package of internal is in the list of those without.
func TestPrograms(t *testing.T) {
	b, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	plain, raced := makeList(t, string(b), "PLAIN"), makeList(t, string(b), "RACED")

	starts := map[string]bool{}
	for _, root := range []string{"cmd", "test"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if startsProgram.Match(text) {
				starts[filepath.ToSlash(filepath.Dir(path))] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	for folder := range starts {
		if slices.Contains(plain, folder) == slices.Contains(raced, folder) {
			t.Errorf("the tests of %s start the program: put %s into one of PLAIN and RACED in the Makefile", folder, folder)
		}
	}
	for _, folder := range slices.Concat(plain, raced) {
		if !starts[folder] {
			t.Errorf("PLAIN and RACED in the Makefile are for packages of cmd and test that start the program, and %s is none", folder)
		}
	}
}

// makeList is a variable of the Makefile with names of folders.
func makeList(t *testing.T, makefile, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `\s*:= (.+)$`).FindStringSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Fields(m[1])
}
