package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree is a module with a package for every way in which a package can end.
var tree = map[string]string{
	"go.mod": "module github.com/gozzard/gozzard\n\ngo 1.26\n",
	"good/good_test.go": `package good

import "testing"

func TestGood(t *testing.T) { t.Log("a quiet word"); t.Run("sub", func(*testing.T) {}) }
func TestSkipped(t *testing.T) { t.Skip("there is no moon") }
func TestParent(t *testing.T) { t.Run("case 1", func(t *testing.T) { t.Skip("there is no sun") }) }
`,
	"bad/bad_test.go": `package bad

import "testing"

func TestBad(t *testing.T) {
	t.Run("right", func(t *testing.T) { t.Log("a quiet word") })
	t.Run("wrong", func(t *testing.T) { t.Error("a loud word") })
}
`,
	"dies/dies_test.go": `package dies

import "testing"

func TestDies(t *testing.T) { t.Log("last words"); panic("no way on") }
`,
	"exits/exits_test.go": `package exits

import (
	"fmt"
	"os"
	"testing"
)

func TestExits(t *testing.T) { fmt.Println("gone"); os.Exit(7) }
`,
	"broken/broken.go":      "package broken\n\nfunc f() { missing() }\n",
	"broken/broken_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestNever(*testing.T) {}\n",
	"vetted/vetted_test.go": `package vetted

import (
	"fmt"
	"testing"
)

func TestVetted(*testing.T) { fmt.Printf("%d\n", "not a number") }
`,
	"plain/plain.go": "package plain\n",
}

// goTest runs the real go test on packages of the tree.
func goTest(t *testing.T, packages ...string) []byte {
	t.Helper()
	return goTestIn(t, writeTree(t, tree), packages...)
}

// writeTree makes a module of files.
func writeTree(t *testing.T, tree map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range tree {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func goTestIn(t *testing.T, dir string, packages ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"test", "-json", "-trimpath"}, packages...)...)
	cmd.Dir = dir
	// compiled as for a release, which other tests need too
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatalf("go test: %v", err)
	}

	return out
}

// summarise runs the summary over an output of go test.
func summarise(t *testing.T, in []byte, skips string, strict bool) (text string, passed bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "skips")
	if err := os.WriteFile(file, []byte(skips), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	passed, err := run(bytes.NewReader(in), &out, file, strict, secondTry{})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), passed
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the summary does not contain %q", part)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestFailures(t *testing.T) {
	text, passed := summarise(t, goTest(t, "./..."), "", false)
	if passed {
		t.Error("a run with failures passed")
	}

	wantText(t, text,
		"ok  \tgithub.com/gozzard/gozzard/good\t",
		"FAIL\tgithub.com/gozzard/gozzard/bad\t",
		"a loud word",
		"FAIL\tgithub.com/gozzard/gozzard/dies\t", "last words", "panic: no way on", "dies_test.go:5",
		"FAIL\tgithub.com/gozzard/gozzard/exits\t", "gone",
		"FAIL\tgithub.com/gozzard/gozzard/broken\t", "undefined: missing",
		"FAIL\tgithub.com/gozzard/gozzard/vetted\t", "wrong type string",
		"?   \tgithub.com/gozzard/gozzard/plain\t[no test files]",
		"  bad TestBad/wrong\n", "  broken\n", "  dies TestDies", "  exits TestExits", "  vetted\n",
		"packages: 1 passed, 5 failed, 1 without tests\n",
	)

	for _, noise := range []string{"a quiet word", "=== RUN"} {
		if strings.Contains(text, noise) {
			t.Errorf("the summary contains %q", noise)
		}
	}

	if last := lastLine(text); last != "4 passed, 6 failed, 2 skipped" {
		t.Errorf("the last line is %q", last)
	}
}

func TestSkipList(t *testing.T) {
	in := goTest(t, "./good")
	const both = "# why\ngood TestSkipped the moon is away\ngood TestParent/* no sun at night\n"

	for _, tt := range []struct {
		name, skips string
		strict      bool
		passed      bool
		last        string
		parts       []string
	}{
		{"all listed", both, true, true, "3 passed, 0 failed, 2 skipped",
			[]string{"good TestSkipped: good_test.go:6: there is no moon (allowed: the moon is away)",
				"good TestParent/case_1"}},
		{"one not listed", "good TestSkipped the moon is away\n", true, false, "3 passed, 1 failed, 1 skipped",
			[]string{"TestParent/case_1 (skipped, and the list of skips does not allow it)"}},
		{"a pattern does not reach into subtests", "good Test* whatever\n", true, false,
			"3 passed, 1 failed, 1 skipped", nil},
		{"of another package", "bad TestSkipped x\nbad TestParent/* x\n", true, false,
			"3 passed, 2 failed, 0 skipped", nil},
		{"not strict", "", false, true, "3 passed, 0 failed, 2 skipped",
			[]string{"there is no moon", "there is no sun"}},
		{"a listed test is gone", both + "good TestGone x\n", true, false, "3 passed, 1 failed, 2 skipped",
			[]string{"good TestGone (in the list of skips, and there is no such test)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, passed := summarise(t, in, tt.skips, tt.strict)
			if passed != tt.passed || lastLine(text) != tt.last {
				t.Errorf("passed %v with the last line %q", passed, lastLine(text))
			}
			wantText(t, text, tt.parts...)
		})
	}
}

// TestLineAsPackageEnds: the line of a package is printed with the event of its end, not later.
func TestLineAsPackageEnds(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out)
	for line := range bytes.Lines(goTest(t, "./good")) {
		s.line(line)
	}
	if !strings.HasPrefix(out.String(), "ok  \tgithub.com/gozzard/gozzard/good\t") {
		t.Errorf("before the end of the run there is %q", out.String())
	}
}

// TestInterrupted: output that ends early is a failure, and so is none at all.
func TestInterrupted(t *testing.T) {
	in := goTest(t, "./good")
	lines := bytes.SplitAfter(bytes.TrimSpace(in), []byte("\n"))
	for name, in := range map[string][]byte{
		"nothing":         nil,
		"no event":        []byte("go: cannot find main module\n"),
		"cut":             bytes.Join(lines[:len(lines)-1], nil),
		"cut in an event": in[:len(in)-20],
	} {
		t.Run(name, func(t *testing.T) {
			if text, passed := summarise(t, in, "", false); passed {
				t.Errorf("passed: %s", text)
			}
		})
	}
}

// TestFailureOfGo: a go test that fails without a failed test is a failure, also beside one that passed.
func TestFailureOfGo(t *testing.T) {
	good := goTest(t, "./good")
	exit := []byte("{\"Action\":\"exit\",\"Code\":1}\n")
	if text, passed := summarise(t, slices.Concat(good, exit), "", false); passed {
		t.Errorf("passed: %s", text)
	}

	bad := goTest(t, "./bad")
	text, _ := summarise(t, slices.Concat(bad, exit), "", false)
	if lastLine(text) != "1 passed, 2 failed, 0 skipped" {
		t.Errorf("the last line is %q", lastLine(text))
	}
}

func TestUnreadableList(t *testing.T) {
	for name, skips := range map[string]string{"no reason": "good TestSkipped\n",
		"bad pattern": "good Test[ because\n"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skips")
			if err := os.WriteFile(file, []byte(skips), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := run(strings.NewReader(""), &bytes.Buffer{}, file, true, secondTry{}); err == nil {
				t.Error("the list was read")
			}
		})
	}
}
