//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this test binary as the program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gozzard": main})
}

// TestScripts uses the program as people do: testdata/script/*.txtar with a real fleet of `gozzard dev`.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts whole fleets")
	}

	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}

	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "ME="+me.Username)
			e.Defer(func() { killLeftovers(t, e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"waitfile": waitFile,
			"expand":   expand,
			"soon":     soon,
		},
	})
}

// exits runs a command and looks at its exit code: exits 3 gozzard status web.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}

	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ex *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ex) {
		got = ex.ExitCode()
	} else {
		ts.Check(err)
	}

	if got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// soon runs a command until its output fits: live status is a moment behind. soon REGEXP COMMAND...
func soon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: soon REGEXP COMMAND...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...) // its exit code is looked at elsewhere
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("no %q in the output of %s", args[0], strings.Join(args[1:], " "))
}

// waitFile waits until a file is there.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s did not come", args[0])
}

// expand replaces $WORK and $ME in files of the script.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: expand FILE...")
	}
	for _, name := range args {
		path := ts.MkAbs(name)
		b, err := os.ReadFile(path)
		ts.Check(err)
		text := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$ME", ts.Getenv("ME")).Replace(string(b))
		ts.Check(os.WriteFile(path, []byte(text), 0o600))
	}
}

// killLeftovers ends the processes of a script that failed: those in its pid files that still stand in its folder.
func killLeftovers(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pid") {
			return nil // what cannot be looked at is not ours
		}

		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}

		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || pid < 2 {
			return nil
		}

		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		if err == nil && strings.HasPrefix(cwd, dir) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Logf("cannot end leftover %d: %v", pid, err)
			}
		}

		return nil
	})

	if err != nil {
		t.Logf("cannot look for leftovers: %v", err)
	}
}
