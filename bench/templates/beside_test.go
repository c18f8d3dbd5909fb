//go:build linux && mako

package main

import (
	"strings"
	"testing"
)

// TestQuickRun does not look at figures, because the machine is busy. It checks that both sides give the same texts.
func TestQuickRun(t *testing.T) {
	res, err := run(t.Context(), quickSize())
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Text(); strings.Count(text, "as fast") != 2 {
		t.Errorf("got %s", text)
	}
}
