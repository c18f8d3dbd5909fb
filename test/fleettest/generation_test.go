//go:build linux

package fleettest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// The numbers of operations that these tests use.
const (
	opStart, opStop, opUnhost, opRestart, opReload, opKill = 0, 1, 4, 7, 8, 9
)

// commanded is a daemon that a server commands through the door of GSE.
type commanded struct {
	*ft.Daemon
	t *testing.T
}

func newCommanded(t *testing.T, root, name string) *commanded {
	return &commanded{Daemon: ft.NewDaemon(t, root, name), t: t}
}

// op runs an operation, checks its code and returns the number of its task, which is its generation.
func (c *commanded) op(s *ft.Server, op, want int) string {
	c.t.Helper()
	body := ft.J{"meta": ft.J{"namespace": "gse", "name": c.Name}, "op_type": op, "hosts": []ft.J{ft.Host(1)},
		"spec": c.Spec(nil)}
	task := s.Operate("operate_proc", body)
	for _, e := range s.Await(task) {
		if e.Code != want {
			c.t.Errorf("operation %d on %s: %d %s, want %d", op, c.Name, e.Code, e.Msg, want)
		}
	}
	return task[strings.LastIndexByte(task, ':')+1:]
}

// TestV11AgentMovesToAnotherServer: an agent that has obeyed 25 operations of one server is moved to a new one as the manual
// says. It obeys the first operation of every kind.
func TestV11AgentMovesToAnotherServer(t *testing.T) {
	t.Parallel() // it mostly waits
	first := ft.StartServer(t, "")
	dir, root := t.TempDir(), openFolder(t)
	agent := first.StartAgentIn(t, 1, dir, "")

	// Give the agent a history.
	var all []*commanded
	for i := range 6 {
		all = append(all, newCommanded(t, root, fmt.Sprintf("gzmove%d", i)))
		all[i].op(first, opStart, 0)
	}
	newest := ""
	for range 19 {
		newest = all[0].op(first, opReload, 0)
	}

	// Move it.
	agent.Kill(syscall.SIGTERM)
	first.Kill(syscall.SIGTERM)
	if err := os.Remove(filepath.Join(dir, "server.key")); err != nil {
		t.Fatal(err)
	}
	second := ft.StartServer(t, "")
	second.StartAgentIn(t, 1, dir, "")

	// Every kind of operation is obeyed at once.
	all[0].op(second, opReload, 0)
	all[1].op(second, opStop, 0)
	all[2].op(second, opKill, 0)
	all[3].op(second, opRestart, 0)
	all[4].op(second, opUnhost, 0)
	removed := map[string]ft.Entry{}
	second.OK("unregister_proc_info", ft.J{"meta": ft.J{"namespace": "gse", "name": all[5].Name},
		"hosts": []ft.J{ft.Host(1)}}, &removed)
	for _, e := range removed {
		if e.Code != 0 {
			t.Errorf("unregister: %d %s", e.Code, e.Msg)
		}
	}

	// They took effect.
	if n := all[0].Count("reload"); n != 20 {
		t.Errorf("%d reloads, want 20", n)
	}
	if all[1].PID() > 0 || all[2].PID() > 0 || all[3].Count("restart") != 1 {
		t.Errorf("stop left pid %d, kill left pid %d, %d restarts", all[1].PID(), all[2].PID(), all[3].Count("restart"))
	}

	fmt.Println("fault V11: 6 kinds of operations of a new server, each obeyed at once")

	// The log of the server says what it found.
	for _, words := range []string{"its generations were lifted", `"generation":` + newest + `,`} {
		if !strings.Contains(second.Output(), words) {
			t.Errorf("the log does not say %q: %s", words, second.Output())
		}
	}
}

// TestV11ServerFromAnOlderCopy: the folder of a server is put back from a copy that is 30 tasks old. The agent obeys
// 20 of 20 operations that follow.
func TestV11ServerFromAnOlderCopy(t *testing.T) {
	ft.FileOnly(t, "an older copy of the data folder is put back; the server refuses an older database")
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	d := newCommanded(t, openFolder(t), "gzcopy")
	d.op(s, opStart, 0)

	// Take a copy while the server is down, and go on.
	s.Kill(syscall.SIGTERM)
	older := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", s.Data, older).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	back(t, s, agent)
	for range 30 {
		d.op(s, opReload, 0)
	}

	// Put it back.
	s.Kill(syscall.SIGTERM)
	if err := os.RemoveAll(s.Data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(older, s.Data); err != nil {
		t.Fatal(err)
	}
	back(t, s, agent)

	// Everything is obeyed.
	for range 20 {
		d.op(s, opReload, 0)
	}
	if n := d.Count("reload"); n != 50 {
		t.Errorf("%d reloads, want 50", n)
	}
	fmt.Printf("fault V11: %d of 20 operations after an older copy was put back\n", d.Count("reload")-30)
	if n := strings.Count(s.Output(), "its generations were lifted"); n != 1 {
		t.Errorf("the log says %d times that the counter was lifted: %s", n, s.Output())
	}
}

// back starts a server again and waits until its agent has a new session.
func back(t *testing.T, s *ft.Server, agent *ft.Program) {
	t.Helper()
	sessions := agent.Sessions()
	s.Again()
	s.AwaitReady()
	ft.Until(t, time.Minute, func() string { return "no new session: " + agent.Output() },
		func() bool { return agent.Sessions() > sessions && s.Online(1) })
}

// openFolder is a folder that every account can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}
