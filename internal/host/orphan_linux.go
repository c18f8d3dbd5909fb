package host

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/supervise"
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

// orphanAge is how long a child must have ended before it counts as an orphan where no cgroup proves it. Other parts of
// this program collect their children at once.
const orphanAge = 10 * time.Second

// collectOrphans collects ended processes of our groups whose parents ended. It never collects a child that another part
// waits for: shells of running commands, watched processes, and everything else that this program starts. It reports
// whether a child has ended that it did not collect.
func (h *Host) collectOrphans() (left bool) {
	h.mu.Lock()
	on := h.subreaper
	h.mu.Unlock()
	if !on {
		return false
	}
	h.zombieMu.Lock()
	defer h.zombieMu.Unlock()

	// In the usual case no child has ended, and one call finds that out.
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil ||
		ended.Signo == 0 {
		clear(h.zombies)
		return false
	}

	// Collect the orphans among all processes.
	pids, err := h.proc.PIDs(nil)
	if err != nil {
		h.log.Warn("cannot collect orphans", "err", err)
		return true
	}
	zombies := map[supervise.Proc]time.Time{}
	defer func() { h.zombies = zombies }()
	for _, pid := range pids {
		if !h.isOrphan(pid, zombies) {
			continue
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			h.log.Warn("cannot collect orphan", "pid", pid, "err", err)
		}
	}
	return true
}

// isOrphan reports whether a pid is an ended child of the agent, of one of our groups, that no other part waits for.
// Without cgroups only time can show that, so it notes in zombies since when the child is known.
func (h *Host) isOrphan(pid int, zombies map[supervise.Proc]time.Time) bool {
	if h.watch.watching(pid) { // most processes are, and need not be read
		return false
	}
	st, err := h.proc.Stat(pid)
	if err != nil || !st.Dead() || st.PPID != os.Getpid() || h.shells.has(pid) || h.fronts.has(pid) ||
		h.watch.watching(pid) {
		return false
	}
	if h.groups == nil {
		p := supervise.Proc{BootID: h.bootID, PID: pid, Start: st.Start}
		since, known := h.zombies[p]
		if !known {
			since = time.Now()
		}
		zombies[p] = since
		return time.Since(since) >= orphanAge
	}

	path, err := h.proc.Cgroup(pid)
	return err == nil && strings.Contains(path+"/", "/gozzard/"+h.instance+"/")
}
