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

const notManaged = "it is running and not managed"

// startByCommand runs `gozzard start` on a process of host 127.0.0.1 and returns what it prints. It must succeed.
func (c *commanded) startByCommand(s *ft.Server) string {
	c.t.Helper()
	cmd := exec.Command(ft.Binary(c.t), "start", c.Name, "-n", "gse", "--host", "127.0.0.1")
	cmd.Env = append(os.Environ(), "GOZZARD_CREDENTIALS="+filepath.Join(s.Data, "credentials.json"))
	b, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Errorf("gozzard start %s: %v\n%s", c.Name, err, b)
	}
	return string(b)
}

// startByGSE starts the process through GSE's door and returns the code and the text.
func (c *commanded) startByGSE(s *ft.Server, policy ft.J) ft.Entry {
	c.t.Helper()
	task := s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": c.Name}, "op_type": opStart,
		"hosts": []ft.J{ft.Host(1)}, "spec": c.Spec(policy)})
	for _, e := range s.Await(task) {
		return e
	}
	return ft.Entry{}
}

// comesBack kills the process and waits until it runs again.
func (c *commanded) comesBack() {
	c.t.Helper()
	before := c.PID()
	ft.KillPID(c.t, before)
	ft.Until(c.t, time.Minute, func() string { return c.Name + " does not come back" },
		func() bool { p := c.PID(); return p > 0 && p != before })
	if n := c.Copies(); n != 1 {
		c.t.Errorf("%d copies of %s", n, c.Name)
	}
}

// TestA23StartAfterAnInterruptedStart: a start is interrupted by the death of the agent while its check runs. The process is
// known and reported as running. GSE's door answers a second start with 828 and says that the process is not managed.
// `gozzard start` makes it managed.
func TestA23StartAfterAnInterruptedStart(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	agent := s.StartAgent(t, 1, "")
	d := newCommanded(t, openFolder(t), "gzcutstart")
	slow := ft.J{"start_check_secs": 4}

	// Interrupt a start during its check.
	task := s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": "gse", "name": d.Name}, "op_type": opStart,
		"hosts": []ft.J{ft.Host(1)}, "spec": d.Spec(slow)})
	ft.Until(t, time.Minute, func() string { return "start_cmd does not run" }, func() bool { return d.PID() > 0 })
	agent.Kill(syscall.SIGKILL)
	s.AgainOnline(t, agent)
	for _, e := range s.Await(task) {
		if e.Code != 65535 || !strings.HasPrefix(e.Msg, "interrupted") {
			t.Fatalf("the start was not interrupted: %+v", e)
		}
	}
	pid := d.PID()

	// The host reports what the start left running, although it was the first that brought the definition.
	ft.Until(t, time.Minute, func() string { return fmt.Sprint(s.Status("gse", d.Name, ft.Host(1))) }, func() bool {
		st := s.Status("gse", d.Name, ft.Host(1))
		return len(st) == 1 && st[0].PID == pid && !st[0].IsAuto
	})

	// GSE's door changes nothing and says so.
	e := d.startByGSE(s, slow)
	if e.Code != 828 || !strings.Contains(e.Msg, notManaged) {
		t.Errorf("GSE's door answers %+v", e)
	}
	if st := s.Status("gse", d.Name, ft.Host(1))[0]; st.IsAuto || st.PID != pid {
		t.Errorf("after GSE's start: managed %v, pid %d, want %d", st.IsAuto, st.PID, pid)
	}

	// Our own door makes it managed.
	out := d.startByCommand(s)
	if !strings.Contains(out, "start: 1 done (1 already running, 1 of them supervised from now on) of 1") {
		t.Errorf("gozzard start prints %s", out)
	}
	if d.PID() != pid || d.Count("start") != 1 {
		t.Errorf("pid %d, want %d; %d starts", d.PID(), pid, d.Count("start"))
	}
	d.comesBack()

	// From now on GSE's sentence is the one that clients know.
	want := fmt.Sprintf("no need to start the process %[1]s(%[1]s) repeatedly that is already running", d.Name)
	if e := d.startByGSE(s, slow); e.Code != 828 || e.Msg != want {
		t.Errorf("GSE's door answers %+v, want %q", e, want)
	}
	fmt.Println("fault A19: an interrupted start, repeated: 828 and not managed by GSE's door, managed by ours")
}

// TestA23StartAfterUnregister: a process that was unregistered runs on. `gozzard start` makes it managed again.
func TestA23StartAfterUnregister(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	s.StartAgent(t, 1, "")
	d := newCommanded(t, openFolder(t), "gzcutreg")
	d.op(s, opStart, 0)
	s.OK("unregister_proc_info", ft.J{"meta": ft.J{"namespace": "gse", "name": d.Name}, "hosts": []ft.J{ft.Host(1)}}, nil)

	if e := d.startByGSE(s, nil); e.Code != 828 || !strings.Contains(e.Msg, notManaged) {
		t.Errorf("GSE's door answers %+v", e)
	}
	if out := d.startByCommand(s); !strings.Contains(out, "1 of them supervised from now on") {
		t.Errorf("gozzard start prints %s", out)
	}
	if n := d.Count("start"); n != 1 {
		t.Errorf("%d starts of a process that runs", n)
	}
	d.comesBack()
}
