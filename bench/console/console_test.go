//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/test/fleettest"
)

// The simulated hosts are this program as another process, also when it is a test.
func TestMain(m *testing.M) {
	if served, code := serveRole(context.Background(), os.Args[1:]); served {
		os.Exit(code)
	}
	fleettest.AsShipped()
	fleettest.Finish(m.Run())
}

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works and reports
// no fault. In CI the browser and the page are there, and nothing may be skipped.
func TestQuickRun(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("needs Debian's package chromium")
	}
	page := filepath.Join("..", "..", "internal", "console", "dist", "index.html")
	if _, err := os.Stat(page); err != nil && os.Getenv("GOZZARD_BINARY") == "" {
		t.Skip("the page is not built: run make web")
	}

	s, text, err := measure(t.Context(), options{size: quickSize(), binary: fleettest.Binary(t), dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Fault(); err != nil {
		t.Error(err)
	}
	t.Log("\n" + text)

	for _, want := range []string{
		"first row of the table", "map of the fleet", "95 of 100 frames while scrolling", "the slowest filter", "memory of the page",
		"page of a task with 120 targets", "95 of 100 frames of this page", "5 viewers, in addition",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q", want)
		}
	}
}
