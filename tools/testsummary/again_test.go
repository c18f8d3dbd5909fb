package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shaky is a module with a test that passes at its second run only, and tests that no second run mends.
var shaky = map[string]string{
	"go.mod": tree["go.mod"],
	"once/once_test.go": `package once

import (
	"os"
	"testing"
)

func TestFine(*testing.T) {}

func TestOnce(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if _, err := os.Stat("seen"); err != nil {
			_ = os.WriteFile("seen", nil, 0o600)
			t.Error("too slow")
		}
	})
}
`,
	"never/never_test.go": "package never\n\nimport \"testing\"\n\nfunc TestNever(t *testing.T) { t.Error(\"always\") }\n",
	"races/races_test.go": `package races

import (
	"os"
	"testing"
)

func TestRaces(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		_ = os.WriteFile("seen", nil, 0o600)
		t.Error("WARNING: DATA RACE")
	}
}
`,
	"skips/skips_test.go": `package skips

import (
	"os"
	"testing"
)

func TestSkips(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if _, err := os.Stat("seen"); err == nil {
			t.Skip("not this time")
		}
		_ = os.WriteFile("seen", nil, 0o600)
		t.Error("too slow")
	})
}
`,
	"dies/dies_test.go": tree["dies/dies_test.go"],
}

// TestSecondTry: a test that passes alone is listed and does not fail the run. Everything else still fails it.
func TestSecondTry(t *testing.T) {
	for _, tt := range []struct {
		name, packages string
		most           int
		passed         bool
		last           string
		parts          []string
	}{
		{"passes alone", "./once", 1, true, "3 passed, 0 failed, 0 skipped",
			[]string{"too slow", "again, alone: once TestOnce", "passed alone:\n  once TestOnce\n",
				"packages: 1 passed, 0 failed"}},
		{"fails again", "./once ./never", 2, false, "3 passed, 1 failed, 0 skipped",
			[]string{"passed alone:\n  once TestOnce\n", "failed:\n  never TestNever\n",
				"packages: 1 passed, 1 failed"}},
		{"too many", "./once ./never", 1, false, "1 passed, 3 failed, 0 skipped",
			[]string{"no second try: 2 tests failed, and at most 1 run again\n"}},
		{"not asked for", "./once", 0, false, "1 passed, 2 failed, 0 skipped", nil},
		{"a race is never forgiven", "./races", 5, false, "0 passed, 1 failed, 0 skipped",
			[]string{"no second try: the race detector reported something in races TestRaces\n"}},
		{"a skip is no pass", "./skips", 5, false, "0 passed, 2 failed, 0 skipped", nil},
		{"beside a test that did not end", "./once ./dies", 5, false, "1 passed, 3 failed, 0 skipped",
			[]string{"no second try: a panic in dies"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeTree(t, shaky)
			in := goTestIn(t, dir, strings.Fields(tt.packages)...)
			again := secondTry{tt.most, []string{"go", "-C", dir, "test", "-json", "-trimpath"}}

			var out bytes.Buffer
			passed, err := run(bytes.NewReader(in), &out, "", true, again)
			if err != nil {
				t.Fatal(err)
			}
			if passed != tt.passed || lastLine(out.String()) != tt.last {
				t.Errorf("passed %v with the last line %q", passed, lastLine(out.String()))
			}
			wantText(t, out.String(), tt.parts...)
		})
	}
}

// TestSecondTryThatCannotRun: a command that does not run is an error, not a pass.
func TestSecondTryThatCannotRun(t *testing.T) {
	dir := writeTree(t, shaky)
	in := goTestIn(t, dir, "./once")
	missing := secondTry{5, []string{filepath.Join(dir, "no-such-go")}}
	if passed, err := run(bytes.NewReader(in), os.Stderr, "", true, missing); passed || err == nil {
		t.Errorf("passed %v, error %v", passed, err)
	}
}
