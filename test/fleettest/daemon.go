//go:build linux

package fleettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Daemon is a real daemon: scripts that put a renamed sleep into the background, and a pid file.
type Daemon struct {
	t    testing.TB
	Dir  string
	Name string
	User string
}

// NewDaemon makes a daemon in a folder below root. It is killed at the end of the test.
func NewDaemon(t testing.TB, root, name string) *Daemon {
	t.Helper()
	d := &Daemon{t: t, Dir: filepath.Join(root, name), Name: name, User: "root"}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		t.Fatal(err)
	}

	CopyProgram(t, "/bin/sleep", filepath.Join(d.Dir, name))

	d.Script("start.sh", "echo start >> calls\nsetsid ./"+name+" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+
		d.PIDFile())
	d.Script("stop.sh", "echo stop >> calls\nkill $(cat "+d.PIDFile()+")")
	d.Script("restart.sh", "echo restart >> calls\nkill $(cat "+d.PIDFile()+") 2>/dev/null; sleep 0.1\nsetsid ./"+
		name+" 1000000 </dev/null >/dev/null 2>&1 &\necho $! > "+d.PIDFile())
	d.Script("reload.sh", "echo reload >> calls")
	d.Script("kill.sh", "echo kill >> calls\nkill -9 $(cat "+d.PIDFile()+")")
	d.Script("version.sh", "echo 1.2.19")

	t.Cleanup(func() {
		// Several definitions may have started it, and the pid file knows the last one only. The agent ends later, and must
		// not bring one back.
		copies := d.pids(func(pid int) bool { return exeOf(pid) == filepath.Join(d.Dir, name) })
		for _, file := range []string{"start.sh", "restart.sh", name} {
			_ = os.Remove(filepath.Join(d.Dir, file)) // the test may have removed it
		}
		for _, pid := range append(copies, d.PID()) {
			if pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
	})

	return d
}

// Script replaces one of the daemon's scripts.
func (d *Daemon) Script(name, text string) {
	d.t.Helper()
	body := "#!/bin/sh\ncd '" + d.Dir + "'\n" + text + "\n"

	// A child of another test could inherit the descriptor, and the kernel does not run a file that is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(d.Dir, name), []byte(body), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// PIDFile is the path of the pid file.
func (d *Daemon) PIDFile() string { return filepath.Join(d.Dir, "daemon.pid") }

// PID is the pid of the live daemon, -1 when there is none.
func (d *Daemon) PID() int {
	b, err := os.ReadFile(d.PIDFile())
	if err != nil {
		return -1
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || !d.is(pid) {
		return -1
	}
	return pid
}

// is reports whether a pid is a live copy of this daemon. A zombie is not alive.
func (d *Daemon) is(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	s := string(stat)
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	comm := d.Name
	if len(comm) > 15 {
		comm = comm[:15]
	}
	return open > 0 && end > open && s[open+1:end] == comm && end+2 < len(s) && s[end+2] != 'Z' && s[end+2] != 'X'
}

// Copies counts live copies of the daemon on this machine.
func (d *Daemon) Copies() int { return len(d.pids(d.is)) }

// pids lists the processes of this machine that match.
func (d *Daemon) pids(match func(pid int) bool) (list []int) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range dirs {
		if pid, err := strconv.Atoi(e.Name()); err == nil && match(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// exeOf is the program of a process, "" if it cannot be read.
func exeOf(pid int) string {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return exe
}

// Calls lists which scripts ran, in order.
func (d *Daemon) Calls() []string {
	b, err := os.ReadFile(filepath.Join(d.Dir, "calls"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// Count returns how often a script ran.
func (d *Daemon) Count(call string) int {
	n := 0
	for _, c := range d.Calls() {
		if c == call {
			n++
		}
	}
	return n
}

// Spec is the daemon's definition in the words of the API. policy overrides its monitor_policy.
func (d *Daemon) Spec(policy J) J {
	p := J{"auto_type": 1, "start_check_secs": 1, "stop_check_secs": 1, "start_retries": 3, "start_interval": 1}
	for k, v := range policy {
		p[k] = v
	}

	control := J{}
	for _, c := range []string{"start", "stop", "restart", "reload", "kill", "version"} {
		control[c+"_cmd"] = "./" + c + ".sh"
	}

	return J{
		"identity": J{"index_key": "", "proc_name": d.Name, "setup_path": d.Dir, "pid_path": d.PIDFile(),
			"config_path": "", "log_path": "", "user": d.User},
		"control": control, "resource": J{"cpu": 90.0, "mem": 90.0}, "monitor_policy": p,
	}
}

// CountArgs counts live processes whose arguments contain a text, without test programs. Packages are tested at the
// same time on one machine, so each test needs its own text.
func CountArgs(t testing.TB, text string) int {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}

	n := 0
	for _, e := range dirs {
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(b), text) && !strings.Contains(string(b), "-test.") {
			n++
		}
	}

	return n
}
