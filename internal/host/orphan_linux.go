package host

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes processes whose parents ended children of this program, so that their exit codes are known
// and nothing depends on how diligent process 1 is. When the agent ends they pass on to process 1. It changes the
// whole program and is therefore not done by New. A process that asked to be signalled at its parent's death would
// be when the agent ends.
func (h *Host) BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subreaper = true
	return nil
}

// collectOrphans takes in ended processes of our cgroups that came to us when their parents ended. It never takes a
// child that somebody waits for: shells of commands in flight, watched processes, and whatever else this program
// starts outside our cgroups.
func (h *Host) collectOrphans() {
	h.mu.Lock()
	on := h.subreaper
	h.mu.Unlock()

	if !on || h.groups == nil { // without cgroups ours cannot be told from others
		return
	}

	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil ||
		ended.Signo == 0 {
		return // the usual case, for the price of one call: no child has ended
	}

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

func (h *Host) isOrphan(pid int) bool {
	st, err := h.proc.Stat(pid)
	if err != nil || !st.Dead() || st.PPID != os.Getpid() || h.shells.has(pid) || h.fronts.has(pid) ||
		h.watch.watching(pid) {
		return false
	}
	path, err := h.proc.Cgroup(pid)
	return err == nil && strings.Contains(path+"/", "/gozzard/"+h.instance+"/")
}
