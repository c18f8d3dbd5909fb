//go:build linux

package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// hogMark is set in the environment of a copy of this program that fills the disk of its output. It has the path of a file
// that gets a line whenever the disk is full.
const hogMark = "GOZZARD_TEST_HOG"

// fillOutputDisk is that program. It does not return.
func fillOutputDisk(path string) {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	for {
		at := int64(0)
		for _, step := range []int64{1 << 20, 4096} {
			for syscall.Fallocate(1, 1, at, step) == nil { // 1 is FALLOC_FL_KEEP_SIZE
				at += step
			}
		}
		if at > 0 {
			fmt.Fprintln(f, "full")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestTD19ProcessFillsTheDiskOfTheAgent: a process allocates blocks behind the end of its log again and again, until the
// disk of the state folder is full. The agent frees them, and carries out a stop of another tenant and the kill of the
// process meanwhile. Then there is room again.
func TestTD19ProcessFillsTheDiskOfTheAgent(t *testing.T) {
	t.Parallel() // it mostly waits
	s := ft.StartServer(t, "")
	disk := tiny(t, "64m")
	agent := s.StartAgentIn(t, 1, disk, "")
	s.AwaitOnline(t, 1)
	work, err := os.MkdirTemp("", "gozzard-hog-") // the account must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	if err := os.Chmod(work, 0o777); err != nil {
		t.Fatal(err)
	}

	// Start the two processes.
	operate := func(name string, op int, script string) ft.Entry {
		t.Helper()
		spec := ft.J{"identity": ft.J{"proc_name": "bash", "setup_path": work, "user": "nobody",
			"pid_path": filepath.Join(work, name+".pid")},
			"control":  ft.J{"start_cmd": "echo $$ > " + name + ".pid; exec bash -c '" + script + "'", "stop_cmd": "kill $(cat " + name + ".pid)"},
			"resource": ft.J{}, "monitor_policy": ft.J{"auto_type": 2, "start_check_secs": 1, "stop_check_secs": 20, "op_timeout": 60}}
		task := s.Operate("operate_proc", ft.J{"meta": ft.J{"namespace": name, "name": name, "labels": ft.J{"proc_name": "bash"}},
			"op_type": op, "hosts": []ft.J{ft.Host(1)}, "spec": spec})
		return s.Await(task)["0:127.0.0.1:"+name+":"+name]
	}
	const modest = "while sleep 1; do :; done"
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ft.CopyProgram(t, program, filepath.Join(work, "hog"))
	hog := "exec env " + hogMark + "=" + filepath.Join(work, "full") + " ./hog"
	for name, script := range map[string]string{"modest": modest, "hog": hog} {
		if e := operate(name, 0, script); e.Code != 0 {
			t.Fatalf("%s: %+v", name, e)
		}
	}
	fills := func() int {
		text, _ := os.ReadFile(filepath.Join(work, "full"))
		return strings.Count(string(text), "full")
	}
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("the disk was full %d times", fills()) },
		func() bool { return fills() >= 5 })

	// End them. The kill is that of the hog.
	if e := operate("modest", 1, modest); e.Code != 0 {
		t.Errorf("stop of another process: %+v", e)
	}
	if e := operate("hog", 9, hog); e.Code != 0 {
		t.Errorf("kill of the process that fills the disk: %+v", e)
	}

	// There is room again, and operations begin.
	ft.Until(t, time.Minute, func() string { return fmt.Sprintf("%d bytes are used", used(t, disk)) },
		func() bool { return used(t, disk) < 24<<20 })
	ft.Until(t, time.Minute, func() string { return "service does not resume" },
		func() bool { return operate("modest", 0, modest).Code == 0 })
	operate("modest", 9, modest)
	if n := strings.Count(agent.Output(), "a process allocated disk space in its log without printing"); n != 1 {
		t.Errorf("%d lines of the log are about it", n)
	}
}

// used is the used space of a file system.
func used(t *testing.T, dir string) int64 {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
