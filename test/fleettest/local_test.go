//go:build linux

package fleettest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/agentsock"
	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TE7: a real agent with a group. Root may do everything, members may read, others get no answer. The agent replaces
// the socket of a killed agent, and a new program that takes over the process serves it again.
func TestTE7SocketOfARealAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}

	// Start an agent with a socket for group 100.
	run, err := os.MkdirTemp("", "gozzard-run-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(run) })

	if err := os.Chmod(run, 0o755); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(run, "agent.sock")
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "", "GOZZARD_SOCKET="+path, "GOZZARD_SOCKET_GROUP=100")
	served := func() int { return strings.Count(agent.Output(), "local socket is served") }
	awaitServed := func(n int) {
		t.Helper()
		ft.Until(t, time.Minute, agent.Output, func() bool { return served() == n })
	}

	awaitServed(1)

	if fi, err := os.Lstat(path); err != nil || fi.Mode() != os.ModeSocket|0o660 ||
		fi.Sys().(*syscall.Stat_t).Gid != 100 {
		t.Fatalf("%v, %v", fi, err)
	}

	// Members may read, others get no answer, root may do everything.
	root, alice, mallory := ft.Account{}, ft.Account{UID: 54321, GID: 54321, Groups: []uint32{100}},
		ft.Account{UID: 54322, GID: 54322}

	try := func(account ft.Account, verb string, code int, words string) {
		t.Helper()
		out, got := account.Gozzard(t, run, "agent", verb, "--socket", path)
		if got != code || !strings.Contains(out, words) {
			t.Errorf("%s as uid %d: exit %d, %s", verb, account.UID, got, out)
		}
	}

	try(alice, "status", 0, "policy")
	try(alice, "ps", 0, "the agent has no process")
	try(alice, "reconnect", 4, "members of its group may look only")
	try(mallory, "status", 4, "run this as root")
	sessions := agent.Sessions()
	if sessions != 1 {
		t.Errorf("%d sessions", sessions)
	}

	try(root, "reconnect", 0, "the agent is reconnecting")
	ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() == 2 })

	pid := func() int {
		t.Helper()
		out, code := root.Gozzard(t, run, "agent", "status", "--socket", path, "-o", "json")
		var st struct {
			PID int `json:"pid"`
		}
		if err := json.Unmarshal([]byte(out), &st); err != nil || code != 0 {
			t.Fatalf("exit %d: %s", code, out)
		}
		return st.PID
	}

	// The next agent replaces the socket of a killed one.
	agent.Kill(syscall.SIGKILL)

	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("a killed agent cannot have removed its socket: %v", err)
	}

	try(root, "status", 3, "no agent listens on "+path)
	agent.Again()
	awaitServed(2)

	if pid() != agent.PID() {
		t.Error("another process answers")
	}

	// A program that takes over serves the socket again.
	signalAgent(t, agent, syscall.SIGUSR2)
	awaitServed(3)
	ft.Until(t, time.Minute, agent.Output, func() bool { return agent.Sessions() == 4 })

	if pid() != agent.PID() {
		t.Error("another process answers")
	}

	// An agent that stops removes its socket.
	agent.Kill(syscall.SIGTERM)

	if left, err := os.ReadDir(run); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAgentWithoutItsSocket: an agent that cannot make its socket works without it, and makes it as soon as it can.
func TestAgentWithoutItsSocket(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.sock")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}

	s := ft.StartServer(t, "")
	agent := s.StartAgentIn(t, 1, dir, "")
	ft.Until(t, time.Minute, agent.Output, func() bool {
		return strings.Contains(agent.Output(),
			path+" is there and is no socket")
	})

	if b, err := os.ReadFile(path); string(b) != "kept" || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	ft.Until(t, time.Minute, agent.Output, func() bool {
		return strings.Contains(agent.Output(),
			"local socket is served")
	})

	if st, err := agentsock.NewClient(path).Status(t.Context()); err != nil || st.PID != agent.PID() {
		t.Errorf("%+v, %v", st, err)
	}
}
