//go:build linux

package fleettest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/policy"
)

// Server is a running `gozzard server`.
type Server struct {
	*Program
	*API
	Data   string
	Agents string // address for agents
}

// StartServer runs `gozzard server` on a data folder, "" for a new one, and waits until it answers.
func StartServer(t testing.TB, data string, extra ...string) *Server {
	t.Helper()
	return StartLimitedServer(t, data, append(noLimits(t), extra...)...)
}

// StartLimitedServer is StartServer with the limits that a server has by default.
func StartLimitedServer(t testing.TB, data string, extra ...string) *Server {
	t.Helper()
	if data == "" {
		data = t.TempDir()
	}
	s := &Server{Data: data, API: &API{t: t}, Agents: "127.0.0.1:" + strconv.Itoa(FreePort(t))}
	args := append([]string{"server", "--data", data, "--listen", "127.0.0.1:" + strconv.Itoa(FreePort(t)),
		"--agent-listen", s.Agents}, extra...)
	s.Program = Start(t, "server", nil, args...)
	awaitCredentials(s.Program, s.API, filepath.Join(data, "credentials.json"))
	s.AwaitReady()
	return s
}

// noLimits are the flags of a server without rate limits, because tests send requests fast. Later flags override them.
func noLimits(t testing.TB) []string {
	t.Helper()
	return Known(t, "server", "--rate-app=0", "--max-failed-logins=0", "--max-connections=0", "--max-in-flight=0",
		"--confirm-above=0", "--confirm-above-percent=0",
		"--destructive-quota=0", "--refused-quota=0", "--max-connections-total=0", "--max-agent-connections=0",
		"--max-unknown-bytes=0", "--definition-quota=0")
}

// AwaitReady waits until the server answers, also after Again.
func (s *Server) AwaitReady() {
	s.Program.t.Helper()
	Until(s.Program.t, time.Minute, func() string { return "the server does not answer: " + s.Output() }, s.answers)
}

func (s *Server) answers() bool {
	ans, err := s.Try("sync_proc_status", J{"meta": J{"namespace": "gse"}, "page": J{"start": 0, "limit": 1}})
	return err == nil && ans.Code == 0
}

// StartAgent runs `gozzard agent` as host 127.0.0.n. It connects to the address to, "" for the server's own.
func (s *Server) StartAgent(t testing.TB, n int, to string, env ...string) *Program {
	t.Helper()
	return s.StartAgentIn(t, n, t.TempDir(), to, env...)
}

// StartAgentIn is StartAgent with a state folder.
func (s *Server) StartAgentIn(t testing.TB, n int, dir, to string, env ...string) *Program {
	t.Helper()

	if to == "" {
		to = s.Agents
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	AllowEverything(t, dir)
	p := Start(t, "agent"+strconv.Itoa(n), env, "agent", "--data", dir, "--server", to, "--ip",
		"127.0.0."+strconv.Itoa(n),
		"--secret-file", filepath.Join(s.Data, "join.secret"))
	s.AwaitOnline(t, n)
	return p
}

// AllowEverything writes a policy that allows everything into an agent's state folder, unless it has a policy.
func AllowEverything(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, policy.FileName)
	if _, err := os.Lstat(path); err == nil {
		return
	}
	if err := os.WriteFile(path, []byte(policy.Permissive), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{path, dir} { // tests cut the power of some of these folders
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Sessions counts the sessions that an agent has opened.
func (p *Program) Sessions() int { return strings.Count(p.Output(), "session is open") }

// AgainOnline starts an agent again and waits until its new session is open: the server does not notice a short
// absence.
func (s *Server) AgainOnline(t testing.TB, agent *Program) {
	t.Helper()
	before := agent.Sessions()
	agent.Again()
	Until(t, time.Minute, func() string { return "no new session: " + string(tail([]byte(agent.Output()), 2000)) },
		func() bool { return agent.Sessions() > before })
}

// StartSim runs a simulated fleet of hosts.
func (s *Server) StartSim(t testing.TB, hosts int, extra ...string) *Program {
	t.Helper()
	// Use memory if there is such a file system: with thousands of journals on one disk a test would only measure that
	// disk.
	dir := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "gozzard-sim-"); err == nil {
		dir = shm
		t.Cleanup(func() { _ = os.RemoveAll(shm) })
	}
	args := append([]string{"sim", "--server", s.Agents, "--secret-file", filepath.Join(s.Data, "join.secret"),
		"--hosts", strconv.Itoa(hosts), "--data", dir}, extra...)
	return start(t, "sim", binary(t, crowd), nil, nil, args...)
}

// Online reports whether host 127.0.0.n is online.
func (s *Server) Online(n int) bool {
	ans, err := s.Try("get_agent_status", J{"hosts": []J{Host(n)}})
	if err != nil || ans.Code != 0 {
		return false
	}
	var d map[string]struct {
		Alive int `json:"bk_agent_alive"`
	}
	return decode(ans.Data, &d) && d["0:127.0.0."+strconv.Itoa(n)].Alive == 1
}

// AwaitOnline waits until host 127.0.0.n is online.
func (s *Server) AwaitOnline(t testing.TB, n int) {
	t.Helper()
	Until(t, time.Minute, func() string { return "host " + strconv.Itoa(n) + " does not come" },
		func() bool { return s.Online(n) })
}
