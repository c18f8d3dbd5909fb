//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works and that
// both sides give the same answers.
func TestQuickRun(t *testing.T) {
	res, err := run(t.Context(), options{size: quickSize(), progress: t.Output()})
	if errors.Is(err, errNoPostgres) && os.Getenv("GOZZARD_TEST_POSTGRES") != "require" {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	text := res.Text()
	t.Log("\n" + text)

	for _, want := range []string{
		"process_status over 4000 processes", "at a random place", "expression of five fields", "five filters",
		"bytes a process", "A business of 1000 instances applied",
		"nothing to do", "PostgreSQL ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q", want)
		}
	}
}
