package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// argBytes is how much of a command line is searched for names.
const argBytes = 4 << 10

// Find looks for the live process of a definition. A process in the cgroup was started by this agent; if there are
// several, the pid file chooses, otherwise the oldest is taken. A pid outside of the cgroup counts only when its
// name and owner match the definition.
func (h *Host) Find(key gozzard.Key, spec *gozzard.Spec) (supervise.Found, error) {
	id := spec.Identity

	// Look up the account that must own the process.
	var owner *account
	if id.User != "" {
		a, err := h.accounts.lookup(id.User)
		if errors.Is(err, errNoUser) {
			return supervise.Found{Reason: fmt.Sprintf("user %s: %v", id.User, errNoUser)}, nil
		}
		if err != nil {
			return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", key, err)
		}
		owner = &a
	}

	// Read the pid file.
	var written time.Time
	hint, hintReason := 0, "no pid file is defined"
	if id.PIDPath != "" {
		hint, written, hintReason = h.readPIDFile(id.PIDPath, owner)
	}

	// List the processes of the cgroup.
	var members []int
	if h.groups != nil {
		var err error
		if members, err = h.groups.members(key); err != nil {
			return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", key, err)
		}
	}

	// Choose one of them, or the process that the pid file names.
	st, groupReason := h.findMember(members, hint, id.ProcName, owner)
	if st.PID == 0 && hint != 0 {
		st, hintReason = h.verify(hint, id.ProcName, owner)
		if st.PID == 0 {
			hintReason = fmt.Sprintf("pid file %s names pid %d, %s", id.PIDPath, hint, hintReason)
		}
	}

	// Explain why no process was found.
	if st.PID == 0 {
		empty := len(members) == 0 && h.groups != nil && h.groups.isEmpty(key)
		return supervise.Found{Reason: joinReasons(groupReason, hintReason), Empty: empty, PIDFileAt: written}, nil
	}

	// Report the process with its start time.
	boot, err := bootTime()
	if err != nil {
		return supervise.Found{}, fmt.Errorf("cannot read the start time of %s: %w", key, err)
	}
	return supervise.Found{
		Proc:      supervise.Proc{BootID: h.bootID, PID: st.PID, Start: st.Start},
		StartedAt: boot.Add(ticks(st.Start)),
		ByCgroup:  slices.Contains(members, st.PID),
	}, nil
}

// findMember chooses among the processes of the cgroup. Without a name to compare, the pid file decides alone.
func (h *Host) findMember(members []int, hint int, name string, owner *account) (procfs.Stat, string) {
	if name == "" || h.groups == nil {
		return procfs.Stat{}, ""
	}

	var best procfs.Stat
	others := 0
	for _, pid := range members {
		st, _ := h.verify(pid, name, owner)
		switch {
		case st.PID == 0:
			others++
		case st.PID == hint:
			return st, ""
		case best.PID == 0, st.Start < best.Start, st.Start == best.Start && st.PID < best.PID:
			best = st
		}
	}

	if others == 0 {
		return best, "nothing that was started is running"
	}

	return best, fmt.Sprintf("of the started processes (%d running) none is %q", others, name)
}

// verify checks that a pid is a live process with the given name and owner, and not a shell of a running command.
// The start time is read before and after, so everything between belongs to one process. The reason is worded to
// follow "pid n,".
func (h *Host) verify(pid int, name string, owner *account) (procfs.Stat, string) {
	// Most pids are not the shell of a command.
	c := h.shells.of(pid)
	if c == nil {
		return h.identify(pid, name, owner)
	}

	// Reject a shell that has not become the process.
	const isShell = "which is the shell of a running command"
	if c.run.Front <= 0 || h.shellImage(c) != imageOther {
		return procfs.Stat{}, isShell
	}

	// Identify the program that took the place of the shell.
	st, reason := h.identify(pid, name, owner)
	switch {
	case st.PID == 0:
		return st, reason
	case c.collected.Load(): // a later process may have the pid, so what was read may belong to it
		return procfs.Stat{}, isShell
	}

	// Remember its command, because the caller will ask for its exit status.
	h.fronts.add(supervise.Proc{BootID: h.bootID, PID: pid, Start: st.Start}, c)
	return st, ""
}

// identify is verify for a pid that may be the shell of a command.
func (h *Host) identify(pid int, name string, owner *account) (procfs.Stat, string) {
	none := procfs.Stat{}

	// Reject pids that can never be a managed process.
	if pid == 1 || pid == os.Getpid() {
		return none, "which is not a process to be managed"
	}

	// Reject what is not a live program.
	before, err := h.proc.Stat(pid)
	switch {
	case errors.Is(err, procfs.ErrGone):
		return none, "which does not run"
	case err != nil:
		return none, fmt.Sprintf("which cannot be read: %v", err)
	case before.Dead():
		return none, "which has ended"
	case before.Kernel():
		return none, "which is a thread of the kernel"
	}

	// Compare name and owner.
	if name != "" {
		n := h.namesOf(pid, &before)
		if !n.match(name) {
			return none, fmt.Sprintf("whose command is %q, not %q", n.shown(), name)
		}
	}
	if reason := h.checkOwner(pid, owner); reason != "" {
		return none, reason
	}

	// Check that all of this was read from one process.
	after, err := h.proc.Stat(pid)
	if err != nil || after.Start != before.Start || after.Dead() {
		return none, "which has just ended"
	}

	return after, ""
}

// namesOf reads the names of a process. Names that cannot be read (the executable of a kernel thread or of another
// account) do not count.
func (h *Host) namesOf(pid int, st *procfs.Stat) names {
	n := names{comm: st.Comm()}
	if exe, err := h.proc.Exe(pid); err == nil {
		n.exe = exe
	}
	if args, err := h.proc.Args(pid, argBytes); err == nil {
		n.args = args
	}
	return n
}

func (h *Host) checkOwner(pid int, owner *account) string {
	if owner == nil {
		return ""
	}
	r, e, err := h.proc.UIDs(pid)
	if err != nil {
		return fmt.Sprintf("whose owner cannot be read: %v", err)
	}
	if r != owner.uid && e != owner.uid {
		return fmt.Sprintf("which belongs to uid %d, not to %s", r, owner.name)
	}
	return ""
}

func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}
