//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
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
