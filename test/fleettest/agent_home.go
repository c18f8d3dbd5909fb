//go:build linux

package fleettest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/policy"
)

// AgentCaps are the capabilities of an agent in mode cap.
var AgentCaps = []uintptr{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL}

// AgentHome has the folders of an agent whose account is not root. The account can reach them; it cannot reach the
// folders of a test.
type AgentHome struct {
	*Program
	Account string
	Dir     string // of root, readable for all
	State   string // of the agent
	Rules   string // its policy: of root in Dir with capabilities, otherwise of the agent in State
}

// StartAgentAs runs `gozzard agent` as host 127.0.0.n and as an account, with or without capabilities, under a policy.
// wrap is a command that execs the agent, and then that command changes the account.
func (s *Server) StartAgentAs(t testing.TB, n int, account string, caps []uintptr, rules string,
	wrap ...string) *AgentHome {
	t.Helper()
	l := NewAgentHome(t, account)
	s.CopyJoinSecret(t, l)
	args := []string{"agent", "--data", l.State, "--server", s.Agents, "--ip", "127.0.0." + strconv.Itoa(n),
		"--secret-file", filepath.Join(l.Dir, "join.secret")}
	l.Rules = filepath.Join(l.State, policy.FileName)

	if caps != nil {
		l.Rules = filepath.Join(l.Dir, policy.FileName)
		args = append(args, "--policy", l.Rules)
	}

	l.WriteRules(t, rules)
	l.Program = &Program{t: t, args: append([]string{filepath.Join(l.Dir, "gozzard")}, args...), wrap: wrap}
	if len(wrap) == 0 && os.Geteuid() == 0 { // an ordinary account cannot change to another one
		l.attr.Credential, l.attr.AmbientCaps = Credential(t, account), caps
	}
	l.first("agent" + strconv.Itoa(n))
	s.AwaitOnline(t, n)
	return l
}

// NewAgentHome makes the folders and copies the program into them.
func NewAgentHome(t testing.TB, account string) *AgentHome {
	t.Helper()
	dir, err := os.MkdirTemp("", "gozzard-agent-home-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &AgentHome{Account: account, Dir: dir, State: filepath.Join(dir, "state")}
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(l.State, 0o700),
		copyFile(Binary(t), filepath.Join(dir, "gozzard"), 0o755))
	if err != nil {
		t.Fatal(err)
	}

	l.Chown(t, l.State)
	return l
}

// CopyJoinSecret gives the agent the secret with which it joins the server.
func (s *Server) CopyJoinSecret(t testing.TB, l *AgentHome) {
	t.Helper()
	path := filepath.Join(l.Dir, "join.secret")
	if err := copyFile(filepath.Join(s.Data, "join.secret"), path, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Chown(t, path)
}

// WriteRules replaces the policy.
func (l *AgentHome) WriteRules(t testing.TB, text string) {
	t.Helper()
	next := l.Rules + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(l.Rules) == l.State {
		l.Chown(t, next)
	}
	if err := os.Rename(next, l.Rules); err != nil {
		t.Fatal(err)
	}
}

// Chown gives a file to the agent's account.
func (l *AgentHome) Chown(t testing.TB, path string) {
	t.Helper()
	Chown(t, path, l.Account)
}

// Enter makes the next Again start the program in a cgroup, or in that of the test if group is nil.
func (l *AgentHome) Enter(group *os.File) {
	l.attr.UseCgroupFD = group != nil
	if group != nil {
		l.attr.CgroupFD = int(group.Fd())
	}
}

// Chown gives a file to an account.
func Chown(t testing.TB, path, account string) {
	t.Helper()
	c := Credential(t, account)
	if err := os.Lchown(path, int(c.Uid), int(c.Gid)); err != nil {
		t.Fatal(err)
	}
}

// Credential is an account of this machine without supplementary groups. The account must exist.
func Credential(t testing.TB, account string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(account)
	if err != nil {
		t.Fatal(err)
	}
	uid, errU := strconv.Atoi(u.Uid)
	gid, errG := strconv.Atoi(u.Gid)
	if err := errors.Join(errU, errG); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}}
}

// copyFile copies, because a link would change the original together with the copy. A separate program does it: a child
// of another test could inherit a descriptor of this process that is open for writing, and the kernel does not run a
// file that is open for writing.
func copyFile(from, to string, mode os.FileMode) error {
	if out, err := exec.Command("cp", "--", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return os.Chmod(to, mode)
}

// CopyProgram copies a program under another name, so that tests can run it at once.
func CopyProgram(t testing.TB, from, to string) {
	t.Helper()
	if err := copyFile(from, to, 0o755); err != nil {
		t.Fatal(err)
	}
}
