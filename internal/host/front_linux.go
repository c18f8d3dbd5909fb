package host

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	frontEvery = 100 * time.Millisecond // how often a running command is checked
	hurryEvery = 10 * time.Millisecond  // the same while a caller waits
	frontKept  = time.Minute            // how long the exit status of a foreground process is remembered

	// While other commands wait for their turn, the check of one that nobody waits for is put off until then.
	frontLatest = time.Second

	// pidFileTime is how long a command in the foreground may take to write its pid file. Until then it may be a launcher
	// that has not put its daemon into the background yet: nginx tries for a port in use for two and a half seconds.
	pidFileTime = 5 * time.Second
)

// A start command that stays in the foreground is the process itself: its shell became the process (exec), or waits
// for it. In the first case the agent is its parent and must collect it. It is no longer the shell of a command,
// and may be found, watched and signalled like any other process.

// fronts are the shells that became processes.
type fronts struct {
	mu     sync.Mutex
	byProc map[supervise.Proc]*front
}

type front struct {
	c     *command
	ended time.Time // zero while it runs
}

func (f *fronts) add(p supervise.Proc, c *command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byProc[p] == nil {
		f.byProc[p] = &front{c: c}
	}
}

func (f *fronts) get(p supervise.Proc) *command {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.byProc[p]; x != nil {
		return x.c
	}
	return nil
}

// has reports whether a pid belongs to a foreground process, or to one that ended a short time ago. Only its
// command may collect it.
func (f *fronts) has(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.byProc {
		if p.PID == pid {
			return true
		}
	}
	return false
}

// tidy forgets foreground processes that ended long enough ago.
func (f *fronts) tidy() {
	f.mu.Lock()
	defer f.mu.Unlock()

	for p, x := range f.byProc {
		select {
		case <-x.c.exited:
		default:
			continue
		}
		if x.ended.IsZero() {
			x.ended = time.Now()
		} else if time.Since(x.ended) > frontKept {
			delete(f.byProc, p)
		}
	}
}

// findFront looks for the process of the definition among the processes that a running command started. The shell
// counts once it is another program.
func (h *Host) findFront(c *command) supervise.Proc {
	id := c.run.Spec.Identity
	w := wanted{name: id.ProcName}
	if id.User != "" {
		w.owner = &c.runAs
	}

	hint := 0
	if id.PIDPath != "" {
		hint, _, _ = h.readPIDFile(id.PIDPath, w.owner)
	}

	var best, misnamed identity.Candidate
	for _, pid := range h.startedBy(c) {
		if id.ProcName == "" && pid != hint || pid == c.cmd.Process.Pid && h.shellImage(c) != imageOther ||
			h.isCopy(c, pid) {
			continue
		}
		x, reason := h.compare(pid, w)
		switch {
		case reason != "" || x.Barred != "":
		case x.Misfit != "":
			q := supervise.Query{Key: c.run.Key, Spec: c.run.Spec}
			if (misnamed.IsZero() || x.Start < misnamed.Start) && h.isMisnamed(q, x, w) {
				misnamed = x
			}
		case best.IsZero() || pid == hint || best.PID != hint && x.Start < best.Start:
			best = x
		}
	}
	if best.IsZero() {
		best = misnamed
	}
	return best.Proc
}

// pidFileWait is how long Run takes a process in the foreground for a launcher, as long as the pid file of the definition
// is not written. A program that never writes its pid file counts as the process after this time. A definition without a
// start check asks for no wait.
func pidFileWait(r supervise.Run) time.Duration {
	if r.Spec == nil || r.Spec.Identity.PIDPath == "" || r.Spec.Policy.StartCheckSecs <= 0 {
		return 0
	}
	wait := pidFileTime
	if r.Timeout > 0 {
		wait = min(wait, r.Timeout*9/10)
	}
	return wait
}

// wrotePIDFile reports whether the pid file of a definition was written since a time.
func (h *Host) wrotePIDFile(c *command, since time.Time) bool {
	var owner *account
	if c.run.Spec.Identity.User != "" {
		owner = &c.runAs
	}
	pid, at, _ := h.readPIDFile(c.run.Spec.Identity.PIDPath, owner)
	return pid != 0 && !at.Before(since.Add(-fileTick))
}

// isMisnamed reports whether nothing but a name that nobody wrote speaks against a process: a start command in the
// foreground became this process, or its shell waits for it.
func (h *Host) isMisnamed(q supervise.Query, x identity.Candidate, w wanted) bool {
	if q.Spec.NamesProgram() || x.Misfit == "" {
		return false
	}

	c := h.fronts.get(x.Proc) // a shell that is not one any more
	if c != nil && c.run.Key != q.Key {
		return false
	}
	for _, running := range h.shells.commands(q.Key) {
		if c == nil && running.run.Front > 0 && h.isBeginOf(running, x.PID) {
			c = running
		}
	}
	if c == nil {
		return false
	}

	// Compare everything but the name.
	w.name = ""
	same, reason := h.compare(x.PID, w)
	if reason != "" || same.Misfit != "" || same.Proc != x.Proc || c.collected.Load() {
		return false
	}
	if x.PID == c.cmd.Process.Pid { // remember its command, because the caller will ask for its exit status
		h.fronts.add(x.Proc, c)
	}
	return true
}

// isBeginOf reports whether a process is what a running command executed: what its shell became, or a child of its shell
// that has executed a program.
func (h *Host) isBeginOf(c *command, pid int) bool {
	if pid == c.cmd.Process.Pid {
		return h.shellImage(c) == imageOther
	}
	st, err := h.proc.Stat(pid)
	return err == nil && st.PPID == c.cmd.Process.Pid && h.shellImage(c) == imageShell && !h.isCopy(c, pid)
}

// startedBy lists the processes of a running command.
func (h *Host) startedBy(c *command) []int {
	if c.group != nil {
		pids, err := treeProcs(c.group.dir, nil)
		if err != nil {
			h.log.Warn("cannot read the processes of a command", "ns", c.run.Key.Namespace,
				"proc", c.run.Key.Name, "err", err)
		}
		return pids
	}

	stats, err := h.sessionMembers(c.cmd.Process.Pid)
	if err != nil {
		h.log.Warn("cannot read the processes of a command", "ns", c.run.Key.Namespace,
			"proc", c.run.Key.Name, "err", err)
	}

	pids := make([]int, len(stats))
	for i := range stats {
		pids[i] = stats[i].PID
	}

	return pids
}

// image is the program that the shell of a command is now.
type image uint8

const (
	imageUnknown image = iota // it has ended, or cannot be read
	imageShell                // what we started
	imageOther                // a program in its place, perhaps another shell
)

// shellImage is what the shell of a command is now.
func (h *Host) shellImage(c *command) image { return h.compareImage(c, c.cmd.Process.Pid) }

// isCopy reports whether a process is a copy of the running shell of a command that has executed no program. It has
// the name of the shell for the moment between fork and exec, and may be gone when somebody looks again.
func (h *Host) isCopy(c *command, pid int) bool {
	return pid != c.cmd.Process.Pid && h.compareImage(c, pid) == imageShell
}

// isCopyOf is isCopy for all running commands that may start the process of a key.
func (h *Host) isCopyOf(key gozzard.Key, pid int) bool {
	for _, c := range h.shells.commands(key) {
		if h.isCopy(c, pid) {
			return true
		}
	}
	return false
}

// compareImage compares the arguments of a process with those of the shell of a command. A long command line is compared as
// far as it can be read.
func (h *Host) compareImage(c *command, pid int) image {
	if c.plain {
		return imageOther
	}

	args, err := h.proc.Args(pid, argBytes)
	if err != nil || len(args) == 0 {
		return imageUnknown
	}

	text := strings.Join(args, "\x00")
	whole := strings.TrimRight(strings.Join(c.cmd.Args, "\x00"), "\x00")
	if text == whole || len(text) >= argBytes-1 && strings.HasPrefix(whole, text) {
		return imageShell
	}

	return imageOther
}

// handOver ends the supervision of a command that turned out to be the process: it keeps running without a time
// limit and is collected when it ends.
func (h *Host) handOver(c *command, p supervise.Proc) supervise.Result {
	res := supervise.Result{Front: true, Main: p, Output: h.tail(c)}
	h.strike(c)
	if p.PID == c.cmd.Process.Pid {
		h.fronts.add(p, c) // in case it was not found before; first, so that it always has an owner
		h.shells.ended(c)
	}
	h.leave(c)
	return res
}

// collectFront reads the exit status of a foreground process. ok is false for all other processes.
func (h *Host) collectFront(p supervise.Proc) (e supervise.Exit, ok bool) {
	c := h.fronts.get(p)
	if c == nil {
		return e, false
	}
	if !h.hasEnded(p) { // or nothing is known, and the wait could last as long as the process
		return e, true
	}

	_ = c.wait() // a failed exit status is not an error here
	if c.cmd.ProcessState == nil {
		return e, true
	}
	ws, isStatus := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !isStatus {
		return e, true
	}

	return exitOf(unix.WaitStatus(ws)), true
}
