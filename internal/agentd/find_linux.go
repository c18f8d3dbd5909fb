package agentd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// findAgent finds the process of a state folder's agent by the pid in it. The process must run from the program and
// have a file of the folder open: the number may belong to another process by now. It is held before it is checked, so
// that it stays the one that was checked.
func findAgent(pid int, program, data string) *os.Process {
	if pid <= 1 {
		return nil
	}

	p, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}

	proc := "/proc/" + strconv.Itoa(pid)
	own, err1 := os.Stat(proc + "/exe")
	file, err2 := os.Stat(program)
	if err1 != nil || err2 != nil || !os.SameFile(own, file) {
		return nil
	}

	open, err1 := os.ReadDir(proc + "/fd")
	data, err2 = filepath.EvalSymlinks(data)
	if err1 != nil || err2 != nil {
		return nil
	}

	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name())); err == nil &&
			strings.HasPrefix(to, data+string(filepath.Separator)) {
			return p
		}
	}

	return nil
}

// requestHandOver asks an agent to hand over to the program on disk.
func requestHandOver(p *os.Process) error { return p.Signal(syscall.SIGUSR2) }
