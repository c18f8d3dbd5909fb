package gozzard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFrontDoorIsTested: the table "The front door" in docs/faults.md has a row for each promise, and every row names a test
// that uses the built program: a script, or a test below test. What it names exists.
func TestFrontDoorIsTested(t *testing.T) {
	_, section, found := strings.Cut(pages(t)["docs/faults.md"], "\n## The front door\n")
	if !found {
		t.Fatal("docs/faults.md has no section The front door")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			rows[strings.TrimSpace(cells[1])] = line
		}
	}

	script := regexp.MustCompile("`script ([a-z0-9_-]+)`")
	proof := regexp.MustCompile("`(test/[a-z]+)` (`Test[A-Za-z0-9_]+`(?:, `Test[A-Za-z0-9_]+`)*)")
	for n := 1; n <= 11; n++ {
		row := rows["F"+strconv.Itoa(n)]
		proofs := 0
		for _, m := range script.FindAllStringSubmatch(row, -1) {
			if _, err := os.Stat(filepath.Join("cmd/gozzard/testdata/script", m[1]+".txtar")); err != nil {
				t.Errorf("F%d: there is no script %s", n, m[1])
			}
			proofs++
		}
		for _, m := range proof.FindAllStringSubmatch(row, -1) {
			for _, name := range testName.FindAllString(m[2], -1) {
				if !inFolder(t, m[1], name) {
					t.Errorf("F%d: there is no %s in %s", n, name, m[1])
				}
				proofs++
			}
		}
		if proofs == 0 {
			t.Errorf("F%d: no test of the built program proves it: %q", n, row)
		}
	}
}

// inFolder reports whether a folder has a test function.
func inFolder(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
