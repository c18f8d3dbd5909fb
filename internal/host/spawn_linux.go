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
	oomMembers   = 100 // of a command, that are looked after: one that forks without end must not hold up its start
)

// spawn starts the shell of a command, or the program in its place, from a thread that was made to be what the
// shell is to inherit.
func (h *Host) spawn(c *command) error {
	tasks := h.limits.tasks(keyFolder(c.run.Key))
	return onOwnThread(func() error {
		// A strict container forbids this call; then the umask is that of the program, which sets the same when it
		// starts.
		if unix.Unshare(unix.CLONE_FS) == nil {
			unix.Umask(commandUmask)
		}
		if err := dropPowers(); err != nil {
			return err
		}
		if c.who.uid != 0 && !h.setuid {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return fmt.Errorf("cannot give up privileges: %w", os.NewSyscallError("prctl", err))
			}
		}

		// 0 is the thread that writes, which costs no lock of the whole machine as moving another does
		for _, file := range tasks {
			if err := writeExisting(file, "0"); err != nil {
				h.log.Warn("command is started without limit", "ns", c.run.Key.Namespace, "proc", c.run.Key.Name,
					"err", err)
			}
		}

		if plain := c.withoutShell(); plain != nil && plain.Start() == nil {
			c.cmd, c.plain = plain, true
			return nil
		} // what it is that cannot be started, the shell says better

		return c.cmd.Start()
	})
}

// resetOOMScore gives a command the kernel's normal place in line when memory runs out: the agent's own, which its
// service file may have set to be spared, would be inherited by everything it starts. What the command has started
// before its own place was changed has inherited it already, and what it was starting just then is seen a little
// later: so this is done once more when the command has ended. Who has chosen a place for himself keeps it.
func (h *Host) resetOOMScore(c *command) {
	if h.oomScore == 0 {
		return
	}

	var as *syscall.Credential

	if h.mode == gozzard.ModeCap {
		as = c.cmd.SysProcAttr.Credential // whose files these are
	}

	err := asAccount(as, func() error {
		var todo []int

		if !c.collected.Load() {
			todo = append(todo, c.cmd.Process.Pid)
		}

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
		h.log.Warn("command keeps the agent's place when memory runs out", "pid", c.cmd.Process.Pid, "err", err)
	}
}

// resetScore tries for a while: for an instant of a program's start its files are root's, as those of a process
// that has ended are.
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

// oomScore reads a place, 0 where that cannot be known.
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

// onOwnThread runs fn on a thread that ends with it, so that what fn changes of the thread touches nothing else.
// The first thread cannot end: while it waits here it is not chosen again.
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

// checkCredentials looks whether a command that was just started for another account acts as that account and
// nobody else. Changing accounts that failed is already an error of the start; this is for what nobody thought of.
// It can only be judged while the shell is what we started: a program that it has become may have changed accounts
// by right. The reason is empty when all is well.
func (h *Host) checkCredentials(c *command) string {
	cred := c.cmd.SysProcAttr.Credential
	if cred == nil && h.mode != gozzard.ModeCap || h.shellImage(c) != imageShell {
		return ""
	}
	has, err := h.proc.Credentials(c.cmd.Process.Pid)
	if err != nil || h.shellImage(c) != imageShell {
		return "" // it has ended
	}
	if cred == nil {
		return hasPowers(has, c.who.uid)
	}
	return differs(has, cred.Uid, cred.Gid, cred.Groups, c.who.uid != 0 && !h.setuid)
}

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

// hasPowers: no account but root has any, whatever the agent has.
func hasPowers(has procfs.Credentials, uid uint32) string {
	if all := has.Effective | has.Permitted | has.Inheritable | has.Ambient; uid != 0 && all != 0 {
		return fmt.Sprintf("the shell has the capabilities %#x", all)
	}
	return ""
}

func set(ids []uint32) []uint32 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
