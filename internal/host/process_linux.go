package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// hold opens a pidfd and then checks that the pid still belongs to the same process. From then on the pid may be
// reused: a signal through the pidfd reaches this process or none. The descriptor is -1 on hosts without pidfd,
// where a tiny window remains.
func (h *Host) hold(p supervise.Proc) (pidfd int, err error) {
	if p.IsZero() || p.BootID != h.bootID {
		return -1, os.ErrProcessDone
	}

	// Open the pidfd.
	fd := -1
	if h.hasPidfd {
		switch fd, err = openPidfd(p.PID); {
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINVAL):
			// It has ended, or its number belongs to a thread of another process now. Old and new kernels report that
			// with different errors.
			return -1, os.ErrProcessDone
		case err != nil:
			return -1, err
		}
	}

	// Check that it holds the same process.
	st, err := h.proc.Stat(p.PID)
	switch {
	case errors.Is(err, procfs.ErrGone), err == nil && (st.Start != p.Start || st.Dead()):
		closeFD(fd)
		return -1, os.ErrProcessDone
	case err != nil:
		closeFD(fd)
		return -1, err
	}

	return fd, nil
}

// Alive reports whether the process is still running.
func (h *Host) Alive(p supervise.Proc) bool {
	if p.IsZero() || p.BootID != h.bootID {
		return false
	}
	st, err := h.proc.Stat(p.PID)
	h.noteShortage(err)
	return err == nil && st.Start == p.Start && !st.Dead()
}

// noteShortage counts an error that says nothing about what was to be read: there was no descriptor for it.
func (h *Host) noteShortage(err error) {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		h.shortages.Add(1)
	}
}

// hasEnded reports whether the process is known to have ended. It is not the contrary of Alive: without a free descriptor
// nothing is known.
func (h *Host) hasEnded(p supervise.Proc) bool {
	if p.IsZero() || p.BootID != h.bootID {
		return true
	}
	st, err := h.proc.Stat(p.PID)
	return errors.Is(err, procfs.ErrGone) || err == nil && (st.Start != p.Start || st.Dead())
}

// sparedFDs is how many descriptors watches leave for starts: without a reserve the last watched process would keep all
// others from being started again.
const sparedFDs = 24

// spare closes a pidfd if few descriptors are left, and returns -1: the process is polled then. The kernel gives the lowest
// free number.
func (h *Host) spare(pidfd int) (int, error) {
	if h.openLimit == 0 || uint64(max(pidfd, 0)) < h.openLimit-min(sparedFDs, h.openLimit/2) {
		return pidfd, nil
	}
	closeFD(pidfd)
	return -1, unix.EMFILE
}

// collectPatience is how long Collect waits for another parent to collect a dead process.
const collectPatience = 3 * time.Second

// Collect waits until an ended process is gone from the process table. If the agent is its parent, Collect collects
// it. Otherwise its parent must, usually process 1, which is not always quick.
func (h *Host) Collect(ctx context.Context, p supervise.Proc) {
	if p.IsZero() || p.BootID != h.bootID {
		return
	}

	end := time.Now().Add(collectPatience)
	for wait := time.Millisecond; time.Now().Before(end); wait = min(2*wait, 50*time.Millisecond) {
		st, err := h.proc.Stat(p.PID)
		if err != nil || st.Start != p.Start || !st.Dead() {
			return
		}
		if h.collect(p).Known {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Signal sends a signal to exactly this process. For a process that ended it returns os.ErrProcessDone.
func (h *Host) Signal(p supervise.Proc, sig supervise.Signal) error {
	s, known := map[supervise.Signal]unix.Signal{
		supervise.SignalTerm: unix.SIGTERM, supervise.SignalKill: unix.SIGKILL, supervise.SignalInt: unix.SIGINT,
		supervise.SignalQuit: unix.SIGQUIT, supervise.SignalHup: unix.SIGHUP, supervise.SignalUsr1: unix.SIGUSR1,
		supervise.SignalUsr2: unix.SIGUSR2, supervise.SignalWinch: unix.SIGWINCH,
	}[sig]
	if !known {
		return fmt.Errorf("unknown signal %d", sig)
	}

	if err := h.signal(p, s); err != nil {
		return fmt.Errorf("cannot send %s to pid %d: %w", unix.SignalName(s), p.PID, err)
	}

	return nil
}

// signal sends a signal to exactly this process, but never to process 1 or the agent.
func (h *Host) signal(p supervise.Proc, s unix.Signal) error {
	if p.PID == 1 || p.PID == os.Getpid() {
		return errors.New("refused")
	}

	fd, err := h.hold(p)
	if err != nil {
		return err
	}

	if fd < 0 {
		err = unix.Kill(p.PID, s)
	} else {
		err = unix.PidfdSendSignal(fd, s, nil, 0)
		closeFD(fd)
	}
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// Watch calls exited once, from the watching goroutine, when the process has ended, also when it has ended before.
// exited must be quick and must not end its own watch; stop waits for a call that is in progress.
func (h *Host) Watch(p supervise.Proc, exited func(supervise.Exit)) (stop func(), err error) {
	// A process in the foreground is watched already, by its command.
	alive := func() bool { return !h.hasEnded(p) }
	if c := h.fronts.get(p); c != nil {
		if x := c.watched.Load(); x != nil {
			stop, ok := h.watch.join(x, alive, func() {
				h.ended.Store(true)
				exited(h.collect(p))
			})
			if ok {
				return stop, nil
			}
		}
	}

	fd, err := h.hold(p)
	if err == nil {
		fd, err = h.spare(fd)
	}
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE): // polling is better than no watch
		h.log.Warn("process is watched without pidfd", "pid", p.PID, "err", err)
	case err != nil && !errors.Is(err, os.ErrProcessDone):
		return nil, fmt.Errorf("cannot watch pid %d: %w", p.PID, err)
	}

	return h.watch.add(p.PID, fd, alive, func() {
		h.ended.Store(true)
		e := h.collect(p)
		if !e.Known {
			e = h.exitOfOther(fd) // still open: the watch ends after this
		}
		exited(e)
	})
}

// collect reads the exit status of a process that the agent may collect: a child of the agent that no running
// command waits for.
func (h *Host) collect(p supervise.Proc) supervise.Exit {
	// A foreground process is collected by its command.
	if e, ok := h.collectFront(p); ok {
		return e
	}

	// Leave everything that is not an ended child.
	st, err := h.proc.Stat(p.PID)
	if err != nil || st.Start != p.Start || !st.Dead() || st.PPID != os.Getpid() || h.shells.has(p.PID) {
		return supervise.Exit{}
	}

	// Collect it.
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(p.PID, &ws, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid != p.PID {
			return supervise.Exit{}
		}
		return exitOf(ws)
	}
}

func exitOf(ws unix.WaitStatus) supervise.Exit {
	if ws.Signaled() {
		return supervise.Exit{Known: true, Code: -1, Signal: unix.SignalName(ws.Signal()), Core: ws.CoreDump()}
	}
	return supervise.Exit{Known: true, Code: ws.ExitStatus()}
}
