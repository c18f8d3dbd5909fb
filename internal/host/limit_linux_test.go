package host_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
)

// oldGroup is the folder of a process in the tree of a cgroup v1 controller.
func (f *fixture) oldGroup(k gozzard.Key, controller string) string {
	f.t.Helper()
	mounts, err := proc.Cgroup1Mounts()
	if err != nil || mounts[controller] == "" {
		f.t.Skipf("no cgroup v1 for %s (%v)", controller, err)
	}
	needsRoot(f.t)
	return filepath.Join(mounts[controller], "gozzard", f.opt.Instance, host.KeyFolder(k))
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func has(t *testing.T, dir string, pid int) bool {
	t.Helper()
	for line := range strings.Lines(content(t, filepath.Join(dir, "cgroup.procs")) + "\n") {
		if strings.TrimSpace(line) == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

func TestLimitHoldsRunningAndLaterProcesses(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("限"), f.spec("svc")
	cpu, mem, pids := f.oldGroup(k, "cpu"), f.oldGroup(k, "memory"), f.oldGroup(k, "pids")
	first := f.daemon(k, s, f.program("svc")+" 300").Proc
	if !has(t, pids, first.PID) || content(t, pids+"/pids.max") != "4096" {
		t.Error("the number of its tasks is not limited")
	}

	facts := f.Facts()
	mode, err := f.Limit(k, gozzard.Resource{CPU: 50, Mem: 10, Enforce: true})
	if mode != "cgroup1" || err != nil {
		t.Fatalf("%q %v", mode, err)
	}
	if !has(t, cpu, first.PID) || !has(t, mem, first.PID) {
		t.Error("a running process was not moved")
	}
	if got, want := content(t, cpu+"/cpu.cfs_quota_us"), strconv.Itoa(facts.CPUs*50_000); got != want {
		t.Errorf("quota %s, not %s", got, want)
	}

	got, err := strconv.ParseInt(content(t, mem+"/memory.limit_in_bytes"), 10, 64)
	if want := facts.MemBytes / 10; err != nil || got > want || got < want-8192 {
		t.Errorf("memory %d, not %d (%v)", got, want, err)
	}
	if !f.Alive(first) {
		t.Error("the limit ended the process")
	}

	second := f.front(f.key("限"), f.spec("svc2"), "exec "+f.program("svc2")+" 300").Proc
	if !has(t, cpu, second.PID) || !has(t, mem, second.PID) || !has(t, pids, second.PID) {
		t.Error("a new process did not begin in its groups")
	}

	if mode, err = f.Limit(k, gozzard.Resource{CPU: 50, Mem: 10}); mode != "" || err != nil {
		t.Errorf("%q %v", mode, err)
	}
	if got := content(t, cpu+"/cpu.cfs_quota_us"); got != "-1" || !f.Alive(first) {
		t.Errorf("after the end of enforcement: %s", got)
	}
	if err := clean(f.Host, k); err != nil {
		t.Fatal(err)
	}

	f.eventually("the groups are gone", func() bool {
		host.Tidy(f.Host)
		return !exists(cpu) && !exists(mem) && !exists(pids)
	})
}

// P10: the kernel kills a process that uses more memory than its limit, and no other process.
func TestP10MemoryLimit(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("hog")
	f.oldGroup(k, "memory")
	percent := 100 * float64(32<<20) / float64(f.Facts().MemBytes)
	if _, err := f.Limit(k, gozzard.Resource{Mem: percent, Enforce: true}); err != nil {
		t.Fatal(err)
	}

	const hog = "head -c 150000000 /dev/zero | tail -c 140000000 >/dev/null" // tail keeps it all until it knows the end
	if res := f.run(k, s, true, hog); res.ExitCode != 128+9 {
		t.Errorf("it took 140 MB: %+v", res)
	}
	if res := f.run(f.key("b"), s, true, hog); res.ExitCode != 0 {
		t.Errorf("another was ended: %+v", res)
	}
}

// P9: the limit of tasks stops a fork bomb, and Clear kills it.
func TestP9TasksAreBounded(t *testing.T) {
	f := newHost(t)
	f.needsCgroups()
	k, s := f.key("a"), f.spec("bomb")
	pids := f.oldGroup(k, "pids")
	s.Identity.PIDPath = f.dir + "/daemon.pid"
	p := f.daemon(k, s, f.script("bomb", "while [ ! -e "+f.dir+
		"/go ]; do sleep 0.01; done; i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done; wait")).Proc

	if err := os.WriteFile(pids+"/pids.max", []byte("50"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}

	f.eventually("forks were refused", func() bool {
		return !strings.HasSuffix(content(t, pids+"/pids.events"),
			"max 0")
	})

	if n, err := strconv.Atoi(content(t, pids+"/pids.current")); err != nil || n > 50 {
		t.Errorf("%d tasks (%v)", n, err)
	}
	if err := clean(f.Host, k); err != nil {
		t.Fatal(err)
	}
	if f.Alive(p) {
		t.Error("the fork bomb is alive")
	}
}

// The limits are written to the files of version 2. The test uses an ordinary folder with these files, because the
// controllers of version 2 are not available on every machine.
func TestLimitOfVersion2(t *testing.T) {
	f := newHost(t)
	base, k := t.TempDir(), f.key("a")
	dir := filepath.Join(base, host.KeyFolder(k))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"cpu.max", "memory.max", "memory.high", "pids.max"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	f.needsCgroups()
	host.SetLimitRoot(f.Host, base)
	mode, err := f.Limit(k, gozzard.Resource{CPU: 25, Mem: 50, Enforce: true})
	if mode != "cgroup2" || err != nil {
		t.Fatalf("%q %v", mode, err)
	}

	facts := f.Facts()
	for name, want := range map[string]string{
		"cpu.max":     strconv.Itoa(facts.CPUs*25_000) + " 100000",
		"memory.max":  strconv.FormatInt(facts.MemBytes/2, 10),
		"memory.high": strconv.FormatInt(facts.MemBytes/2-facts.MemBytes/2/10, 10),
	} {
		if got := content(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}

	f.run(k, f.spec("x"), true, ":")

	if got := content(t, dir+"/pids.max"); got != "4096" {
		t.Errorf("pids.max is %q", got)
	}
}

func TestLimitWithoutMeansSaysSoAndStopsNothing(t *testing.T) {
	f := newHost(t, noCgroups)
	k := f.key("a")
	if mode, err := f.Limit(k, gozzard.Resource{CPU: 50, Enforce: true}); mode != "" || err == nil {
		t.Errorf("%q %v", mode, err)
	}
	if mode, err := f.Limit(k, gozzard.Resource{CPU: 50}); mode != "" || err != nil {
		t.Errorf("%q %v", mode, err)
	}
	if res := f.run(k, f.spec("x"), true, "echo started"); res.Output != "started" {
		t.Errorf("%+v", res)
	}
}
