//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// The parts that are measured as separate processes are this program, also when it is a test.
func TestMain(m *testing.M) {
	if served, code := serveRole(os.Args[1:]); served {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works and
// reports no fault.
func TestQuickRun(t *testing.T) {
	res, err := run(t.Context(), options{size: quickSize(), binary: os.Getenv("GOZZARD_BINARY"), progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	text := res.Text()
	t.Log("\n" + text)

	for _, want := range []string{
		"One host, one operation a task", "One task on 20 hosts", "Status reports of 20 processes",
		"Registering 6 names", "sync_proc_status over HTTP",
		"get_proc_status of one process", "server CPU per operation",
		"One task with 120 targets", "answered with 304",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q", want)
		}
	}
}

// TestQuickProfiles checks that the server writes profiles when they are wanted, and that its largest costs are named.
func TestQuickProfiles(t *testing.T) {
	dir := t.TempDir()
	res, err := run(t.Context(), options{size: quickSize(), binary: os.Getenv("GOZZARD_BINARY"), only: "large", profiles: dir, progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	for _, name := range []string{"accept-1.cpu", "large-1.cpu", "poll-1.cpu", "poll-304-1.heap"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("profile %s: %v", name, err)
		}
	}
	if text := res.Text(); !strings.Contains(text, "The largest costs of the server, poll-304: ") {
		t.Errorf("the results do not name the largest costs:\n%s", text)
	}
}

func TestMissedGoals(t *testing.T) {
	b := &bench{res: newResults(quickSize())}
	b.missSingle(goalSingle)
	b.missFanOut(goalFanOut)
	b.missLarge(largeTargets, goalAcceptLarge, goalAcceptLarge/2, time.Millisecond)
	if missed := b.res.Missed(); len(missed) > 0 {
		t.Errorf("missed %q, and all goals are reached", missed)
	}

	b.missSingle(2 * goalSingle)
	b.missFanOut(3)
	b.missLarge(largeTargets, 3*goalAcceptLarge, goalAcceptLarge, time.Millisecond)
	if missed := b.res.Missed(); len(missed) != 4 || !strings.Contains(missed[1], "20 % above") {
		t.Errorf("missed %q", missed)
	}
}

// TestQuickBeside compares a program with itself.
func TestQuickBeside(t *testing.T) {
	binary := os.Getenv("GOZZARD_BINARY")
	if binary == "" {
		var err error
		if binary, err = child.Build(t.Context(), t.TempDir(), "gozzard", "./cmd/gozzard"); err != nil {
			t.Fatal(err)
		}
	}
	res, err := beside(t.Context(), options{size: quickSize(), binary: binary, only: "single", progress: t.Output()}, binary, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}
	if text := res.Text(); !strings.Contains(text, "| now | before | ratio |") || !strings.Contains(text, "operations a second") {
		t.Errorf("the results have no figures side by side:\n%s", text)
	}
}
