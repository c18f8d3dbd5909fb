//go:build linux

package fleettest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestTS8 with real programs: a server's key is rotated and agents follow. Then the server runs from an old copy, and
// no agent accepts its commands.
func TestTS8RotationAndAServerFromAnOldCopy(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	key := filepath.Join(s.Data, "signing.key")
	old := read(t, key)

	again := func() {
		t.Helper()
		s.Kill(syscall.SIGTERM)
		s.Again()
		s.AwaitReady()
	}

	sessions := func(n int) {
		t.Helper()
		ft.Until(t, time.Minute, func() string { return "no new session: " + agent.Output() },
			func() bool { return agent.Sessions() >= n })
	}

	sessions(1)

	out := runProgram(t, "key", "rotate", "--data", s.Data)
	if !strings.Contains(out, "epoch 2") {
		t.Fatalf("rotated: %s", out)
	}
	if out := runProgram(t, "key", "list", "--data", s.Data, "-o", "json"); strings.Count(out, `"epoch"`) != 2 ||
		strings.Contains(out, "seed") {
		t.Fatalf("keys: %s", out)
	}

	again()
	sessions(2)
	newest := read(t, key)

	replace(t, key, old)
	again()
	refusal := "command of epoch 1, this host obeys epoch 2"
	ft.Until(t, time.Minute, func() string { return "no refusal: " + agent.Output() },
		func() bool { return strings.Contains(agent.Output(), refusal) })

	agent.Kill(syscall.SIGKILL)
	agent.Again() // the join file is the old server's by now, and has no effect

	ft.Until(t, time.Minute, func() string { return "no refusal after a restart: " + agent.Output() }, func() bool {
		return strings.Count(agent.Output(), refusal) >= 2
	})

	if n := agent.Sessions(); n != 2 {
		t.Errorf("the old copy opened %d sessions", n-2)
	}

	replace(t, key, newest)
	again()
	sessions(3)
}

func runProgram(t *testing.T, args ...string) string {
	t.Helper()
	b, err := exec.Command(ft.Binary(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("gozzard %s: %v\n%s", strings.Join(args, " "), err, b)
	}
	return string(b)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func replace(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
