package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

const (
	trimEvery = 250 * time.Millisecond // how often the output of a running command is trimmed
	killWait  = 5 * time.Second        // how long killed processes may take to end
	turnWait  = 500 * time.Millisecond // how long a start waits for those before it

	backgroundPoll = 5 * time.Millisecond // first pause between checks for background processes
)

// Run runs one shell command until it ends or its time is over. It returns when the shell has ended, even if
// processes that it started are still running, or when the command turned out to be the process itself. When ctx
// ends first, the command keeps running: only a time-out kills it.
func (h *Host) Run(ctx context.Context, r supervise.Run) (supervise.Result, error) {
	// Reject what comes too late.
	if err := ctx.Err(); err != nil {
		return supervise.Result{}, err
	}
	if h.isClosed() {
		return supervise.Result{}, errClosed
	}

	// Start the command.
	asked := time.Now()
	c, err := h.launch(r)
	if err != nil {
		return supervise.Result{}, err
	}
	began := time.Now()
	if c.plain {
		c.report(supervise.ProgressProgram)
	} else {
		c.report(supervise.ProgressShell)
	}
	c.run.Progress, c.run.Hurry = nil, nil // the command may be known for months

	// Set the timers: the time-out, the check for a foreground process, and the trim of the output.
	var timeout <-chan time.Time
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	var front <-chan time.Time
	var hurry <-chan struct{}
	every := frontEvery
	if r.Front > 0 && r.Keeps {
		front, hurry = time.After(r.Front), r.Hurry
		if r.Front < frontEvery { // a caller waits for it
			every = hurryEvery
		}
	}
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	waitsForFile := began.Add(pidFileWait(r))

	// Wait for the first event that decides.
	for {
		select {
		case <-c.exited:
			if endsProcess(r) && !h.awaitBackground(ctx, c, timeout) {
				h.leave(c)
				return supervise.Result{}, errors.New("command was left running in the background")
			}
			return h.finish(c), nil
		case <-timeout:
			return h.cutOff(c), nil
		case <-front:
			if hurry != nil && h.crowded() && time.Since(began) < frontLatest { // others are to be started first
				front = time.After(frontEvery)
				continue
			}
			if p := h.findFront(c); !p.IsZero() && (!time.Now().Before(waitsForFile) || h.wrotePIDFile(c, asked)) {
				return h.handOver(c, p), nil
			}
			front = time.After(every) // it may take longer to execute its program
		case <-hurry:
			hurry, every, front, waitsForFile = nil, hurryEvery, time.After(0), began
		case <-ctx.Done():
			h.leave(c)
			return supervise.Result{}, fmt.Errorf("command was left running: %w", ctx.Err())
		case <-h.closing:
			h.leave(c)
			return supervise.Result{}, fmt.Errorf("command was left running: %w", errClosed)
		case <-tick.C:
			if err := c.out.trim(); err != nil {
				h.log.Warn("cannot trim output of command", "ns", r.Key.Namespace, "proc", r.Key.Name, "err", err)
			}
		}
	}
}

// crowded reports whether commands may wait for their turn.
func (h *Host) crowded() bool { return len(h.turns) == cap(h.turns) }

// report tells the caller of Run how far a command is.
func (c *command) report(p supervise.Progress) {
	if c.run.Progress != nil {
		c.run.Progress(p)
	}
}

// launch starts a command when it is its turn. More starts at a time than the machine has processors for only slow each
// other down. A start that takes long, say from a file server that does not answer, does not hold up the others.
func (h *Host) launch(r supervise.Run) (*command, error) {
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	default:
		if r.Progress != nil {
			r.Progress(supervise.ProgressQueued)
		}
		wait := time.NewTimer(turnWait)
		defer wait.Stop()
		select {
		case h.turns <- struct{}{}:
			defer func() { <-h.turns }()
		case <-wait.C:
		}
	}

	c, err := h.prepare(r)
	if err != nil {
		return nil, err
	}
	return c, h.start(c)
}

// endsProcess reports whether a command is meant to end the process. Callers write "./stop.sh &" and expect it to
// run to its end.
func endsProcess(r supervise.Run) bool {
	return r.Action == gozzard.ActionStop || r.Action == gozzard.ActionKill
}

// awaitBackground waits until the background processes of a command have ended, or its time is over. It returns
// false when the host is closed or ctx ends first: then the command keeps running.
func (h *Host) awaitBackground(ctx context.Context, c *command, timeout <-chan time.Time) bool {
	for pause := backgroundPoll; h.hasBackground(c); pause = min(2*pause, trimEvery) {
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-timeout:
			wait.Stop()
			return true
		case <-ctx.Done():
			wait.Stop()
			return false
		case <-h.closing:
			wait.Stop()
			return false
		}
		if err := c.out.trim(); err != nil {
			h.log.Warn("cannot trim output of command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
		}
	}
	return true
}

// hasBackground reports whether a process that a command started is alive after its shell has ended.
func (h *Host) hasBackground(c *command) bool {
	if c.group != nil {
		populated, err := isPopulated(c.group.dir)
		return err == nil && populated
	}
	members, err := h.sessionMembers(c.cmd.Process.Pid)
	return err == nil && len(members) > 0
}

// cutOff kills a command that took too long, with everything that it started.
func (h *Host) cutOff(c *command) supervise.Result {
	// Keep the result of a command that ended just in time.
	select {
	case <-c.exited:
		return h.finish(c)
	default:
	}

	// Kill the command.
	h.killRun(c)
	_ = c.cmd.Process.Kill() // in case it left its group; it may have ended in between

	// Wait for its end.
	wait := time.NewTimer(killWait)
	defer wait.Stop()
	select {
	case <-c.exited:
		res := h.finish(c)
		res.TimedOut, res.ExitCode, res.Signal = true, -1, unix.SignalName(unix.SIGKILL)
		return res
	case <-wait.C: // stuck in the kernel; it ends when the kernel call returns
		res := supervise.Result{TimedOut: true, ExitCode: -1}
		res.Output, res.LeftOut = h.printed(c)
		h.leave(c)
		return res
	}
}

// finish collects a shell that has ended.
func (h *Host) finish(c *command) supervise.Result {
	// Decide about what the command left running, before the shell is collected: until then its pid and its session
	// number are not reused.
	if c.run.Keeps {
		h.resetOOMScore(c)
	} else {
		h.killRun(c)
	}

	// Collect the shell.
	c.unhook()
	err := c.wait()
	h.shells.ended(c)
	h.strike(c)
	h.ended.Store(true)

	// Read the result and the output.
	res := result(c.cmd, err)
	res.Output, res.LeftOut = h.printed(c)
	h.copyToLog(c)

	// Release the group and the output file.
	var errs []error
	if c.group != nil && h.groups.release(c.group) {
		errs = append(errs, c.out.remove())
	}
	errs = append(errs, c.out.close())
	if err := errors.Join(errs...); err != nil {
		h.log.Warn("cannot remove output of command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}

	return res
}

// copyToLog adds the output of a command that has a separate file to the log of its process.
func (h *Host) copyToLog(c *command) {
	if !c.run.Keeps || c.out.log != nil || c.out.none {
		return
	}
	_, log, err := h.logs.create(keyFolder(c.run.Key), logBoundsOf(c.run.Spec))
	if err == nil {
		err = errors.Join(c.out.copyTo(log), log.Close())
	}
	if err != nil {
		h.log.Warn("cannot add output of command to log", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
}

func result(cmd *exec.Cmd, err error) supervise.Result {
	if cmd.ProcessState == nil {
		return supervise.Result{ExitCode: -1, Output: fmt.Sprint(err)}
	}
	res := supervise.Result{ExitCode: cmd.ProcessState.ExitCode()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		res.Signal = unix.SignalName(ws.Signal())
	}
	return res
}

// printed is the output of a command as its caller wants it.
func (h *Host) printed(c *command) (text string, leftOut int64) {
	if c.run.Whole == 0 {
		return h.tail(c), 0
	}
	text, leftOut, err := c.out.whole(c.run.Whole)
	if err != nil {
		h.log.Warn("cannot read output of script", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
	return text, leftOut
}

func (h *Host) tail(c *command) string {
	s, err := c.out.tail()
	if err != nil {
		h.log.Warn("cannot read output of command", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
	return s
}

// leave stops waiting for a command, which keeps running; it is collected later.
func (h *Host) leave(c *command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned = append(h.abandoned, c)
	h.shellEnded.Store(true) // it may have ended before it is in the list
}

// finishAbandoned collects commands without a waiting caller that have ended.
func (h *Host) finishAbandoned() {
	// Separate the commands that have ended from those that run.
	h.mu.Lock()
	var ended, running []*command
	for _, c := range h.abandoned {
		select {
		case <-c.exited:
			ended = append(ended, c)
		default:
			running = append(running, c)
		}
	}
	h.abandoned = running
	h.mu.Unlock()

	// Collect the ended ones.
	for _, c := range ended {
		h.finish(c)
	}
}

// killRun kills everything that a run started and that can be found.
func (h *Host) killRun(c *command) {
	var err error
	if c.group != nil {
		err = killGroup(c.group.dir, killWait)
	} else {
		err = h.killSession(c.cmd.Process.Pid)
	}
	if err != nil {
		h.log.Warn("command left processes behind", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name, "err", err)
	}
}

// killSession kills the session and the descendants of a shell, and repeats until none is left, because they may
// fork in between. Processes that were found once stay known when they lose their parent. Processes that made a new
// session and lost their parent before are not found: cgroups solve that.
func (h *Host) killSession(leader int) error {
	return h.killAll(func() ([]supervise.Proc, error) {
		found, err := h.sessionMembers(leader)
		procs := make([]supervise.Proc, len(found))
		for i, st := range found {
			procs[i] = supervise.Proc{BootID: h.bootID, PID: st.PID, Start: st.Start}
		}
		return procs, err
	})
}

// sessionMembers lists the live processes of the session of a shell, and the descendants of the shell.
func (h *Host) sessionMembers(leader int) ([]procfs.Stat, error) {
	all, err := h.allStats()
	if err != nil {
		return nil, err
	}

	var found []procfs.Stat
	for pid, st := range all {
		if !st.Dead() && (st.Session == leader || descends(all, pid, leader)) {
			found = append(found, st)
		}
	}

	return found, nil
}

// descends reports whether a process is from, or descends from it.
func descends(all map[int]procfs.Stat, pid, from int) bool {
	for range len(all) { // bounded: a list read while pids change may contain a cycle
		if pid == from {
			return true
		}
		st, ok := all[pid]
		if !ok || st.PPID <= 1 {
			return false
		}
		pid = st.PPID
	}
	return false
}
