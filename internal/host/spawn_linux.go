package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
)

const (
	commandUmask = 0o022
	oomPatience  = time.Second
	// how many members of a command are adjusted: a command that forks without end must not delay its start
	oomMembers = 100
)

// spawn starts the shell of a command, or the program in its place, from a thread that was prepared with what the
// shell inherits.
func (h *Host) spawn(c *command) error {
	tasks := h.limits.tasks(keyFolder(c.run.Key))
	return onOwnThread(func() error {
		// Set the umask and the priority.
		set := c.run.Spec.Exec
		if err := setUmask(set.Umask); err != nil {
			return err
		}
		if err := setNice(set.Nice); err != nil {
			return err
		}

		// Drop privileges.
		if err := dropPowers(); err != nil {
			return err
		}
		if c.runAs.uid != 0 && !h.setuid {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return fmt.Errorf("cannot give up privileges: %w", os.NewSyscallError("prctl", err))
			}
		}

		// Enter the groups of version 1. 0 is the writing thread; moving another one would take a lock of the whole
		// machine.
		for _, file := range tasks {
			if err := writeExisting(file, "0"); err != nil {
				h.log.Warn("cannot set the limits of a command before its start", "ns", c.run.Key.Namespace,
					"proc", c.run.Key.Name, "err", err)
			}
		}

		// Start the program, or the shell: the shell reports better why a program cannot be started.
		if plain := c.withoutShell(); plain != nil && h.startLimited(plain, set.Rlimits) == nil {
			c.cmd, c.plain = plain, true
			return nil
		}
		return h.startLimited(c.cmd, set.Rlimits)
	})
}

// resetOOMScore gives a command the normal OOM score. The agent may have a protected score from its service file,
// and everything that it starts would inherit it. What the command started before its score was changed has
// inherited the old score, so this is repeated when the command has ended. A process that changed its score keeps
// it.
func (h *Host) resetOOMScore(c *command) {
	if h.oomScore == 0 {
		return
	}

	var as *syscall.Credential
	if h.mode == gozzard.ModeCap {
		as = c.cmd.SysProcAttr.Credential // the owner of these files
	}

	err := asAccount(as, func() error {
		// Begin with the shell.
		var todo []int
		if !c.collected.Load() {
			todo = append(todo, c.cmd.Process.Pid)
		}

		// Continue with the members that it started, until there is no new one.
		for done := map[int]bool{}; len(done) < oomMembers; {
			for _, pid := range todo {
				if err := h.resetScore(pid); err != nil {
					return err
				}
				done[pid] = true
			}
			if c.group == nil {
				break
			}
			if todo = slices.DeleteFunc(h.startedBy(c), func(pid int) bool { return done[pid] }); len(todo) == 0 {
				break
			}
		}

		return nil
	})
	if err != nil {
		h.log.Warn("cannot reset oom_score_adj of a command", "pid", c.cmd.Process.Pid, "err", err)
	}
}

// resetScore repeats for a while: during the start of a program its files belong to root for a moment, as those of
// an ended process do.
func (h *Host) resetScore(pid int) error {
	file := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
	for end := time.Now().Add(oomPatience); ; time.Sleep(time.Millisecond) {
		if oomScore(file) != h.oomScore {
			return nil
		}
		err := writeExisting(file, "0")
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH): // it has ended
			return nil
		case !errors.Is(err, unix.EACCES) || time.Now().After(end):
			return err
		}
		if st, err := h.proc.Stat(pid); err != nil || st.Dead() {
			return nil
		}
	}
}

// oomScore reads a score; 0 when it cannot be read.
func oomScore(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

// onOwnThread runs fn on a thread that ends with it, so that changes of the thread affect nothing else. The first
// thread cannot end: while it waits here, it is not chosen again.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- fn()
			return // still locked: the thread ends
		}
		defer runtime.UnlockOSThread()
		done <- onOwnThread(fn)
	}()
	return <-done
}

// checkCredentials checks that a command for another account runs as this account and nothing else. A failed change
// of the account is already an error of the start; this check is a second barrier. It is valid only while the shell
// is the program that was started: a later program may have changed its account legally. A program that was started
// without a shell, as an account that cannot gain privileges, is checked too. The reason is empty when
// everything is right.
func (h *Host) checkCredentials(c *command) string {
	cred := c.cmd.SysProcAttr.Credential
	stays := c.prog != nil && c.runAs.uid != 0 && !h.setuid // such a program cannot change its account
	if cred == nil && h.mode != gozzard.ModeCap || !stays && h.shellImage(c) != imageShell {
		return ""
	}

	has, err := h.proc.Credentials(c.cmd.Process.Pid)
	if err != nil || !stays && h.shellImage(c) != imageShell {
		return "" // it has ended
	}

	if cred == nil {
		return hasPowers(has, c.runAs.uid)
	}
	return differs(has, cred.Uid, cred.Gid, cred.Groups, c.runAs.uid != 0 && !h.setuid)
}

// differs says what a shell has that it should not have, or "".
func differs(has procfs.Credentials, uid, gid uint32, groups []uint32, confined bool) string {
	switch {
	case has.UIDs != [4]uint32{uid, uid, uid, uid}:
		return fmt.Sprintf("the shell has the user ids %v", has.UIDs)
	case has.GIDs != [4]uint32{gid, gid, gid, gid}:
		return fmt.Sprintf("the shell has the group ids %v", has.GIDs)
	case !slices.Equal(set(has.Groups), set(groups)):
		return fmt.Sprintf("the shell has the groups %v, not %v", has.Groups, groups)
	case confined && !has.NoNewPrivs:
		return "the shell may gain privileges"
	}
	return hasPowers(has, uid)
}

// hasPowers says which capabilities an account other than root has, or "". None may have any, whatever the agent has.
func hasPowers(has procfs.Credentials, uid uint32) string {
	if all := has.Effective | has.Permitted | has.Inheritable | has.Ambient; uid != 0 && all != 0 {
		return fmt.Sprintf("the shell has the capabilities %#x", all)
	}
	return ""
}

// set sorts ids and removes duplicates.
func set(ids []uint32) []uint32 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
