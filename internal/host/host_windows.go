package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

const stillActive = 259

// shellCommand hands the text to cmd.exe as it is.
func shellCommand(text string) *exec.Cmd {
	cmd := exec.Command("cmd.exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /S /C "` + text + `"`, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	return cmd
}

// killTree kills the shell only: what it started goes on.
func killTree(p *os.Process) error { return p.Kill() }

func terminate(*os.Process) error { return errors.New("windows has no signal to ask a process to end") }

// bootID need not tell boots apart, as start times are absolute here.
func bootID() (string, error) { return "windows", nil }

// baseEnv is the agent's own: programs do not start without half of it.
func baseEnv() []string { return os.Environ() }

func lookup(pid int) (info, error) {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return info{}, fmt.Errorf("cannot open process: %w", err)
	}
	defer windows.CloseHandle(handle)
	var code uint32
	if err := windows.GetExitCodeProcess(handle, &code); err != nil {
		return info{}, fmt.Errorf("cannot read process: %w", err)
	}
	if code != stillActive {
		return info{}, os.ErrProcessDone
	}
	var created, exited, kernel, used windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &used); err != nil {
		return info{}, fmt.Errorf("cannot read process: %w", err)
	}
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if err := windows.QueryFullProcessImageName(handle, 0, &buf[0], &n); err != nil {
		return info{}, fmt.Errorf("cannot read process: %w", err)
	}
	return info{start: uint64(created.Nanoseconds()), name: filepath.Base(windows.UTF16ToString(buf[:n]))}, nil
}

func startTime(start uint64) time.Time { return time.Unix(0, int64(start)) }
