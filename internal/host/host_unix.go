//go:build unix && !linux

package host

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/gozzard/gozzard"
)

func shellCommand(_ gozzard.Shell, text string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// killTree kills the shell and those of its children that have made no group of their own.
func killTree(p *os.Process) error {
	if err := syscall.Kill(-p.Pid, syscall.SIGKILL); err != nil {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// baseEnv is the same whatever the agent itself was started with.
func baseEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + os.Getenv("HOME"), "SHELL=/bin/sh",
		"LANG=C.UTF-8"}
}
