//go:build linux

package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// fleet is a set of supervised daemons that must stay untouched.
type fleet struct {
	t    *testing.T
	s    *ft.Server
	ds   []*ft.Daemon
	pids []int
}

// startFleet starts supervised daemons. At the end of the test the agent ends before they do, or it would restart them.
func startFleet(t *testing.T, s *ft.Server, agent *ft.Program, prefix string, n int) *fleet {
	t.Helper()
	f := &fleet{t: t, s: s, ds: daemons(t, prefix, n)}
	endFirst(t, agent)
	startAll(t, s.API, f.ds, nil)
	for _, d := range f.ds {
		f.pids = append(f.pids, d.PID())
	}
	return f
}

// endFirst ends the agent before the files and daemons that the test has made so far are removed.
func endFirst(t *testing.T, agent *ft.Program) {
	t.Cleanup(func() {
		agent.Kill(syscall.SIGCONT)
		agent.Kill(syscall.SIGKILL)
	})
}

// touched counts the daemons that were restarted, ended or doubled.
func (f *fleet) touched() (restarted, doubled int) {
	f.t.Helper()
	copies := copiesByName(f.t)
	for i, d := range f.ds {
		if d.PID() != f.pids[i] || d.Count("start") != 1 {
			restarted++
			f.t.Logf("%s: pid %d was %d, calls %v", d.Name, d.PID(), f.pids[i], d.Calls())
		}
		if copies[d.Name] > 1 {
			doubled++
		}
	}
	return restarted, doubled
}

// unseen counts the daemons that the server does not show as running and supervised with their pids. It allows some
// time for reports.
func (f *fleet) unseen() int {
	f.t.Helper()
	end := time.Now().Add(30 * time.Second)
	for {
		n := 0
		for i, d := range f.ds {
			rows := f.s.Status("faults", d.Name, ft.Host(1))
			if len(rows) != 1 || rows[0].PID != f.pids[i] || rows[0].Status != 1 || !rows[0].IsAuto {
				n++
			}
		}
		if n == 0 || time.Now().After(end) {
			return n
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// untouched fails if anything happened to the daemons.
func (f *fleet) untouched(when string) {
	f.t.Helper()
	restarted, doubled := f.touched()
	if unseen := f.unseen(); restarted+doubled+unseen > 0 {
		f.t.Errorf("%s: of %d processes %d were restarted, %d doubled, %d lost sight of", when, len(f.ds), restarted,
			doubled, unseen)
	}
}

// cameBack kills a daemon and waits until the agent restarts it.
func cameBack(t *testing.T, d *ft.Daemon) {
	t.Helper()
	old := d.PID()
	ft.KillPID(t, old)
	ft.Until(t, 30*time.Second, func() string { return d.Name + " is not brought back" },
		func() bool { p := d.PID(); return p > 0 && p != old })
}

// copiesByName counts live processes by the name of their program.
func copiesByName(t *testing.T) map[string]int {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}

	n := map[string]int{}
	for _, e := range dirs {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		s := string(b)
		from, to := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
		if from > 0 && to > from && to+2 < len(s) && s[to+2] != 'Z' && s[to+2] != 'X' {
			n[s[from+1:to]]++
		}
	}

	return n
}

// needs skips a test that cannot run on this machine.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
}

// mountOf finds where a cgroup tree is mounted: "cgroup2", or the name of a version 1 controller.
func mountOf(t *testing.T, kind string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) > 3 && (w[2] == kind || w[2] == "cgroup" && strings.Contains(","+w[3]+",", ","+kind+",")) {
			return w[1]
		}
	}

	t.Skipf("no %s is mounted", kind)
	return ""
}

// groupV1 makes a version 1 group and puts a process into it, 0 for none. Its processes leave the group before it is
// removed.
func groupV1(t *testing.T, controller string, pid int) string {
	t.Helper()
	root := mountOf(t, controller)
	dir := filepath.Join(root, "gozzard-faults-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cannot make a %s group: %v", controller, err)
	}

	t.Cleanup(func() {
		for range 50 { // its members are being killed
			b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for _, p := range strings.Fields(string(b)) {
				_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(p), 0)
			}
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("cannot remove %s", dir)
	})

	if pid > 0 {
		control(t, filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
	}

	return dir
}

// control writes to a control file.
func control(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// openDir is a folder that other accounts can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }
