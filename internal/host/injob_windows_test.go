package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/host"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The environment and the output of the agent program of these tests.
const (
	agentInstance = "HOST_TEST_INSTANCE"
	agentReady    = "ready"
)

func innerKey() gozzard.Key { return gozzard.Key{Namespace: "测试", Name: "inner"} }

// actAsAgent is an agent in the current folder. It starts one process when its input has a line.
func actAsAgent() {
	dir, err := os.Getwd()
	if err == nil {
		_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}

	h, err := host.New(host.Options{Instance: os.Getenv(agentInstance), StateDir: filepath.Join(dir, "state"),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}

	fmt.Println(strings.Join(h.Degraded(), "\n"))
	spec := &gozzard.Spec{Identity: gozzard.Identity{SetupPath: dir}}
	res, err := h.Run(context.Background(), supervise.Run{Key: innerKey(), Spec: spec, Keeps: true,
		Timeout: time.Minute, Command: background("sleep", "inner")})
	fmt.Println(res, err)
	fmt.Println(agentReady)
	time.Sleep(time.Minute)
}

// An agent that runs in a job starts its processes outside of the job if the job allows it, and reports it if not.
func TestAgentInJob(t *testing.T) {
	for name, mayLeave := range map[string]bool{"may leave": true, "may not": false} {
		t.Run(name, func(t *testing.T) {
			f := newHost(t)
			f.program("inner")
			f.key(innerKey().Name)
			outer, said := f.agentInJob(mayLeave)
			if strings.Contains(said, "started in a job") == mayLeave {
				t.Errorf("the agent says: %s", said)
			}

			found := f.find(f.Host, innerKey(), f.spec("inner"))

			if err := windows.TerminateJobObject(outer, 1); err != nil {
				t.Fatal(err)
			}
			if !mayLeave {
				until(t, "the process has gone with the job", func() bool { return !f.Alive(found.Proc) })
				return
			}

			time.Sleep(500 * time.Millisecond) // it must not end, and no event reports that it keeps running

			if !f.Alive(found.Proc) {
				t.Error("the process ended with the job of the agent")
			}
		})
	}
}

// agentInJob starts an agent in a job and returns its output until its process is started.
func (f *fixture) agentInJob(mayLeave bool) (outer windows.Handle, said string) {
	f.t.Helper()
	outer, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		f.t.Fatal(err)
	}

	f.t.Cleanup(func() { _ = windows.CloseHandle(outer) })
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION

	if mayLeave {
		limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK
	}
	if _, err := windows.SetInformationJobObject(outer, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		f.t.Fatal(err)
	}

	cmd := exec.Command(filepath.Join(f.dir, "inner.exe"))
	cmd.Dir, cmd.Env = f.dir, append(os.Environ(), programMode+"=agent", agentInstance+"="+f.opt.Instance)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		f.t.Fatal(err)
	}

	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false,
		uint32(cmd.Process.Pid))
	if err != nil {
		f.t.Fatal(err)
	}

	defer windows.CloseHandle(process)

	if err := windows.AssignProcessToJobObject(outer, process); err != nil {
		f.t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		f.t.Fatal(err)
	}

	for lines := bufio.NewScanner(out); lines.Scan(); said += lines.Text() + "\n" {
		if lines.Text() == agentReady {
			return outer, said
		}
	}

	f.t.Fatalf("the agent ended and said: %s", said)
	return outer, said
}
