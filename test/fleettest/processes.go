//go:build linux

package fleettest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ProcessesIn lists the live processes that have to do with a folder: their working folder or their program is in it,
// or their arguments name it. Programs of Gozzard itself do not count. Each test needs its own folder.
func ProcessesIn(t testing.TB, dir string) (pids []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range dirs {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid != os.Getpid() && concerns(pid, dir) && CommOf(pid) != "" {
			pids = append(pids, pid)
		}
	}

	return pids
}

func concerns(pid int, dir string) bool {
	base := "/proc/" + strconv.Itoa(pid)
	exe, err := os.Readlink(base + "/exe")
	if errors.Is(err, fs.ErrNotExist) { // it has ended, or is a thread of the kernel
		return false
	}
	if strings.TrimSuffix(filepath.Base(exe), " (deleted)") == "gozzard" {
		return false
	}
	if cwd, _ := os.Readlink(base + "/cwd"); within(exe, dir) || within(cwd, dir) {
		return true
	}

	b, err := os.ReadFile(base + "/cmdline")
	return err == nil && bytes.Contains(b, []byte(dir))
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// CommOf is the name that the kernel shows for a live process, "" if it has ended. A zombie has ended.
func CommOf(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	s := string(stat)
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || end < open || end+2 >= len(s) || s[end+2] == 'Z' || s[end+2] == 'X' {
		return ""
	}
	return s[open+1 : end]
}

// KillPID kills one process. It fails the test for a pid that is not one process: -1, which is the pid of a daemon that
// does not run, would be every process of the machine.
func KillPID(t testing.TB, pid int) {
	t.Helper()
	if pid < 2 {
		t.Fatalf("there is no process to kill: pid %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("cannot kill process %d: %v", pid, err)
	}
}

// KillIn ends the processes of a folder, see ProcessesIn.
func KillIn(t testing.TB, dir string) {
	t.Helper()
	Until(t, 20*time.Second, func() string { return "processes in " + dir + " do not end" }, func() bool {
		pids := ProcessesIn(t, dir)
		for _, pid := range slices.Backward(pids) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
}
