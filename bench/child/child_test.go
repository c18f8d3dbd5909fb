//go:build linux

package child_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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

// TestYield: all threads of the program have a lower priority afterwards, and so do those that come later.
func TestYield(t *testing.T) {
	if os.Getenv("CHILD_YIELD") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestYield$", "-test.v")
		cmd.Env = append(os.Environ(), "CHILD_YIELD=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}

	if err := child.Yield(); err != nil {
		t.Fatal(err)
	}
	var ready, done sync.WaitGroup
	hold := make(chan struct{})
	for range 20 {
		ready.Add(1)
		done.Go(func() { runtime.LockOSThread(); ready.Done(); <-hold })
	}
	ready.Wait()
	threads, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil || len(threads) < 20 {
		t.Fatalf("threads: %v, %v", threads, err)
	}
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if nice := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[16]; nice != "10" {
			t.Errorf("%s: nice %s", path, nice)
		}
	}
	close(hold)
	done.Wait()
}
