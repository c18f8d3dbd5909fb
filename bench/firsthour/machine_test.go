//go:build linux

package main

import "testing"

// TestFigures: lines of a script become figures, other lines do not.
func TestFigures(t *testing.T) {
	var f figures
	if err := f.read("started\ntime run a program: 1250\nFAILED: x\ntime kill -9: it answers again: 60\n"); err != nil {
		t.Fatal(err)
	}
	if ms, ok := f.find("run a program"); !ok || ms != 1250 {
		t.Errorf("run a program: %d %v", ms, ok)
	}
	if ms, ok := f.find("kill -9: it answers again"); !ok || ms != 60 {
		t.Errorf("kill -9: %d %v", ms, ok)
	}
	if err := f.read("time x: soon"); err == nil {
		t.Error("a figure that is no number was accepted")
	}
}
