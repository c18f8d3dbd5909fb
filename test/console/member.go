//go:build linux

package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/policy"
	"github.com/gozzard/gozzard/test/fleettest"
)

// Member is an enrolled host with a real agent, which has a program file of its own: updates replace it.
type Member struct {
	*fleettest.Program
	File  string // the program
	State string // the state folder of the agent
	rules string
}

// Join enrols host 127.0.0.n and starts its agent. "" as token: a token is made for it.
func (s *Server) Join(t testing.TB, n int, token string) *Member {
	t.Helper()
	dir := t.TempDir()
	m := &Member{File: filepath.Join(dir, "gozzard"), State: filepath.Join(dir, "state"),
		rules: filepath.Join(dir, "policy.yaml")}
	if err := os.Chmod(dir, 0o755); err != nil { // the agent rejects a program in a folder of others
		t.Fatal(err)
	}
	fleettest.CopyProgram(t, fleettest.Binary(t), m.File)

	// The program of the tests has no number as its version, so nothing is newer.
	if err := os.WriteFile(m.rules, []byte(policy.Permissive+"allow_downgrade: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	// Join with a token.
	if token == "" {
		made, err := s.Client.CreateEnrolToken(t.Context(), client.EnrolTokenRequest{})
		if err != nil {
			t.Fatal(err)
		}
		token = made.Token
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(strings.TrimSpace(token)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run(t, "agent", "join", "--server", s.Cred.URL, "--token-file", file, "--data", m.State, "--ip",
		"127.0.0."+strconv.Itoa(n), "--policy", m.rules)

	m.Program = m.start(t, m.State)
	return m
}

// Trust makes the host accept releases of a key.
func (m *Member) Trust(t testing.TB, key fleettest.ReleaseKey) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(m.rules), "release.pub"), key.PEM, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Copy starts a second agent with a copy of the state folder, as a cloned machine does.
func (m *Member) Copy(t testing.TB) *fleettest.Program {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	if out, err := exec.Command("cp", "-a", m.State, state).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return m.start(t, state)
}

func (m *Member) start(t testing.TB, state string) *fleettest.Program {
	t.Helper()
	return fleettest.StartFile(t, "agent", m.File, "agent", "--data", state, "--policy", m.rules)
}

// Run runs the program as the administrator of the server, and returns what it prints.
func (f *Fleet) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := f.Command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("gozzard %q: %v: %s", args, err, out)
	}
	return string(out)
}
