//go:build linux

package child_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

func start(t *testing.T, script string) *child.Process {
	t.Helper()
	p, err := child.Start(t.TempDir(), "shell", exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// A program that has ended is reported with its last words, so that a run does not wait for what cannot come.
func TestEndedProgram(t *testing.T) {
	p := start(t, "echo no memory >&2; exit 3")
	never := func() (bool, error) { return false, nil }
	err := child.Until(t.Context(), time.Minute, "the port", never, p)
	if err == nil || !strings.Contains(err.Error(), "no memory") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Until: %v", err)
	}
	if p.Alive() == nil {
		t.Error("it is alive")
	}
}

func TestUntil(t *testing.T) {
	n := 0
	err := child.Until(t.Context(), time.Minute, "the third call", func() (bool, error) { n++; return n == 3, nil })
	if err != nil || n != 3 {
		t.Errorf("Until: %v after %d calls", err, n)
	}

	reason := errors.New("port is closed")
	err = child.Until(t.Context(), time.Millisecond, "the port", func() (bool, error) { return false, reason })
	if !errors.Is(err, reason) {
		t.Errorf("Until: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := child.Until(ctx, time.Minute, "the port", func() (bool, error) { return false, nil }); err == nil {
		t.Error("Until does not end with its context")
	}
}

// What a program spends is counted, and what it does not spend is not.
func TestSpent(t *testing.T) {
	busy, idle := start(t, "while :; do :; done"), start(t, "sleep 600")
	spends := func() error {
		return child.Until(t.Context(), time.Minute, "CPU time", func() (bool, error) {
			d, err := busy.CPU()
			return d >= 200*time.Millisecond, err
		}, busy)
	}
	var ofIdle time.Duration
	ofBusy, wall, err := child.Spent(busy, func() (err error) {
		ofIdle, _, err = child.Spent(idle, spends)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if ofBusy == 0 || wall == 0 || ofIdle >= ofBusy {
		t.Errorf("busy %s, idle %s of %s", ofBusy, ofIdle, wall)
	}
	if n, err := idle.RSS(); err != nil || n < 1<<10 {
		t.Errorf("RSS: %d, %v", n, err)
	}
}

// One that does not listen to SIGTERM would hold the test for as long as Stop waits, so it is only one that does.
func TestStop(t *testing.T) {
	p := start(t, "sleep 600")
	p.Stop()
	if err := p.Alive(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("after Stop: %v", err)
	}
	if _, err := p.CPU(); err == nil {
		t.Error("CPU time of a program that has ended")
	}
}
