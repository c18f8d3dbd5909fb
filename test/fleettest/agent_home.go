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

// AgentHome is where an agent of an account other than root lives: folders that this account can reach, which those
// of a test are not.
type AgentHome struct {
	*Program
	Account string
	Dir     string // root's, for everybody to read
	State   string // the agent's
	Rules   string // its policy: of root in Dir with capabilities, else its own in State
}

// StartAgentAs runs `gozzard agent` as host 127.0.0.n and as an account, with capabilities or without, under a policy.
func (s *Server) StartAgentAs(t testing.TB, n int, account string, caps []uintptr, rules string) *AgentHome {
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
	l.Program = &Program{t: t, args: append([]string{filepath.Join(l.Dir, "gozzard")}, args...)}
	l.attr.Credential, l.attr.AmbientCaps = Credential(t, account), caps
	l.first("agent" + strconv.Itoa(n))
	s.AwaitOnline(t, n)
	return l
}

// Lodge makes the folders, with the program in them.
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

// CopyJoinSecret lets the agent join the server.
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

// Chown makes a file the agent's account's.
func (l *AgentHome) Chown(t testing.TB, path string) {
	t.Helper()
	Chown(t, path, l.Account)
}

// Enter has the next Again start the program in a cgroup, nil in that of the test.
func (l *AgentHome) Enter(group *os.File) {
	l.attr.UseCgroupFD = group != nil
	if group != nil {
		l.attr.CgroupFD = int(group.Fd())
	}
}

// Chown makes a file somebody's.
func Chown(t testing.TB, path, account string) {
	t.Helper()
	c := Credential(t, account)
	if err := os.Lchown(path, int(c.Uid), int(c.Gid)); err != nil {
		t.Fatal(err)
	}
}

// Credential is an account of this machine, which must be there, without further groups.
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

// copyFile is not a link: what is done to the copy leaves the original as it is. Another program does it, since a
// descriptor of this one that is open for writing could be inherited by a child of another test, and nobody may run
// a file that is being written.
func copyFile(from, to string, mode os.FileMode) error {
	if out, err := exec.Command("cp", "--", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return os.Chmod(to, mode)
}
