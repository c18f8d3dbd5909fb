package host

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes this program the parent of processes whose parents ended, so that their exit status is
// known and nothing depends on process 1. When the agent ends, process 1 becomes their parent. It changes the whole
// program, so New does not do it. A process that asked for a signal at the death of its parent gets it when the
// agent ends.
func (h *Host) BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subreaper = true
	return nil
}

// collectOrphans collects ended processes of our cgroups whose parents ended. It never collects a child that
// another part waits for: shells of running commands, watched processes, and everything that this program starts
// outside of our cgroups.
func (h *Host) collectOrphans() {
	// Without cgroups our processes cannot be distinguished from others.
	h.mu.Lock()
	on := h.subreaper
	h.mu.Unlock()
	if !on || h.groups == nil {
		return
	}

	// In the usual case no child has ended, and one call finds that out.
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil ||
		ended.Signo == 0 {
		return
	}

	// Collect the orphans among all processes.
	pids, err := h.proc.PIDs(nil)
	if err != nil {
		h.log.Warn("cannot collect orphans", "err", err)
		return
	}
	for _, pid := range pids {
		if !h.isOrphan(pid) {
			continue
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			h.log.Warn("cannot collect orphan", "pid", pid, "err", err)
		}
	}
}

// isOrphan reports whether a pid is an ended child of the agent, in one of our cgroups, that no other part waits for.
func (h *Host) isOrphan(pid int) bool {
	st, err := h.proc.Stat(pid)
	if err != nil || !st.Dead() || st.PPID != os.Getpid() || h.shells.has(pid) || h.fronts.has(pid) ||
		h.watch.watching(pid) {
		return false
	}
	path, err := h.proc.Cgroup(pid)
	return err == nil && strings.Contains(path+"/", "/gozzard/"+h.instance+"/")
}
