package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// argBytes is how much of a command line is searched for names.
const argBytes = 4 << 10

const isShell = "which is the shell of a running command"

// wanted is what the process of a definition looks like.
type wanted struct {
	name    string
	owner   *account // nil if the definition names none, or one that does not exist
	missing string   // the account of the definition that does not exist
}

// wantedBy reads what a definition says about its process.
func (h *Host) wantedBy(spec *gozzard.Spec) (wanted, error) {
	w := wanted{name: spec.Identity.ProcName}
	name := spec.Identity.User
	if name == "" {
		if name = h.unnamed(); name == "" || name == h.self.name { // a process of any account may be meant
			return w, nil
		}
	}

	a, err := h.accounts.lookup(name)
	switch {
	case errors.Is(err, errNoUser):
		w.missing = name
	case err != nil:
		return w, err
	default:
		w.owner = &a
	}
	return w, nil
}

// Find collects the evidence about the process of a definition and decides by the rules of package identity.
func (h *Host) Find(q supervise.Query) (supervise.Found, error) {
	// Find out what the process looks like.
	shortages := h.shortages.Load()
	w, err := h.wantedBy(q.Spec)
	if err != nil {
		return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", q.Key, err)
	}

	// Read the pid file, and look at what is on record.
	e := identity.Evidence{Starting: q.Starting, Began: q.Began, Held: q.Held}
	hint := 0
	if e.NoName = "no pid file is defined"; q.Spec.Identity.PIDPath != "" {
		hint, e.PIDFileAt, e.NoName = h.readPIDFile(q.Spec.Identity.PIDPath, w.owner)
	}
	e.MainEnded = hint != 0 && h.namesEnded(q, hint, e.PIDFileAt)
	if h.Alive(q.Held.Proc) {
		of := w
		if q.Held.Unnamed == w.name { // it may have executed another program since, and nobody wrote its name
			of.name = ""
		}
		if c, reason := h.describe(q.Held.PID, of); reason == "" && c.Proc == q.Held.Proc {
			e.Alive = &c
		}
	}

	// List the processes of the group. If the process on record is alive, only its successor can matter.
	pids, err := h.members(q, w)
	if err != nil {
		return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", q.Key, err)
	}
	for _, pid := range pids {
		if e.Alive != nil && pid != hint || h.isCopyOf(q.Key, pid) {
			continue
		}
		if c, reason := h.describeMember(pid, w); reason == "" && c.Barred == "" && !h.isTaken(q, c.Proc) {
			c.Misnamed = q.Starting && h.isMisnamed(q, c, w)
			e.Members = append(e.Members, c)
		}
	}

	if q.Starting {
		e.Shell = h.shellAsProcess(q.Key, w)
	}

	// Look at the process that the pid file names.
	if hint != 0 {
		c, reason := h.describe(hint, w)
		if reason != "" {
			e.NoName = fmt.Sprintf("its pid file %s names pid %d, %s", q.Spec.Identity.PIDPath, hint, reason)
		} else {
			h.findOwner(&c, q)
			e.Named = &c
		}
	}

	// What could not be read may be the process.
	f := found(e)
	if f.Proc.IsZero() && h.shortages.Load() != shortages {
		return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", q.Key, unix.EMFILE)
	}
	if f.Proc.IsZero() && w.missing != "" {
		f.Reason = fmt.Sprintf("user %s: %v", w.missing, errNoUser)
	}
	f.ByCgroup = slices.Contains(pids, f.Proc.PID)
	f.Empty = f.Proc.IsZero() && len(pids) == 0 && h.groups != nil && h.groups.isEmpty(q.Key)
	return f, nil
}

// fileTick is how much the clock of a file system may be behind.
const fileTick = 10 * time.Millisecond

// namesEnded reports whether the pid file names the process on record, which has ended, and was written since that
// process began, or during the start in progress.
func (h *Host) namesEnded(q supervise.Query, named int, written time.Time) bool {
	if named != q.Held.PID || q.Held.BootID != h.bootID || h.Alive(q.Held.Proc) {
		return false
	}
	since := q.Began
	if !q.Starting {
		boot, err := bootTime()
		if err != nil {
			return false
		}
		since = boot.Add(ticks(q.Held.Start))
	}
	return !written.Before(since.Add(-fileTick))
}

// found decides about the evidence, in the words of supervision.
func found(e identity.Evidence) supervise.Found {
	d := identity.Decide(e)
	f := supervise.Found{Verdict: d.Verdict, Orphans: d.Orphans, Reason: d.Reason, Against: d.Against}
	if d.Verdict == identity.Ours || d.Verdict == identity.Adopted {
		f.Proc, f.StartedAt, f.How, f.Misfit = d.Main.Proc, d.Main.StartedAt, d.How, d.Main.Misfit
		if d.Main.Misnamed { // nobody wrote the name that differs
			f.Misfit = ""
		}
	} else {
		f.PIDFileAt, f.Near = e.PIDFileAt, d.Near
	}
	return f
}

// shellAsProcess is the shell of a start command that stays in the foreground, if it has the name of the definition.
func (h *Host) shellAsProcess(key gozzard.Key, w wanted) *identity.Candidate {
	if w.name == "" {
		return nil
	}
	for _, c := range h.shells.commands(key) {
		if c.run.Front <= 0 || h.shellImage(c) != imageShell {
			continue
		}
		if x, reason := h.compare(c.cmd.Process.Pid, w); reason == "" && x.Misfit == "" {
			x.Barred = isShell
			return &x
		}
	}
	return nil
}

// isTaken reports whether another definition has a process on record.
func (h *Host) isTaken(q supervise.Query, p supervise.Proc) bool {
	return q.Taken != nil && q.Taken(p, nil) != ""
}

// findOwner finds out whether a process belongs to something else than the definition: to another definition, to
// another agent, or to a command that runs beside the process.
func (h *Host) findOwner(c *identity.Candidate, q supervise.Query) {
	agent, folder, run := h.groupOf(c.PID)
	switch {
	case agent != "" && agent != h.instance:
		c.Other = "another agent on this host"
		return
	case agent != "" && folder == keyFolder(q.Key) && !strings.HasPrefix(run, keptPrefix):
		c.Barred = "which a command of the process has started for its own use"
		return
	case q.Taken == nil:
		return
	}

	var inGroup func(gozzard.Key) bool
	if agent != "" && folder != keyFolder(q.Key) {
		inGroup = func(k gozzard.Key) bool { return keyFolder(k) == folder }
	}
	c.Other = q.Taken(c.Proc, inGroup)
}

// describeMember describes a process of the group. Without a name to compare, the pid file decides alone.
func (h *Host) describeMember(pid int, w wanted) (identity.Candidate, string) {
	c, reason := h.describe(pid, w)
	if w.name == "" && c.Misfit == "" {
		c.Misfit = "runs, but the definition names no program"
	}
	return c, reason
}

// describe describes a live process and compares it with a definition. A shell of a running command is barred until it
// became another program. The reason says why there is no such process. It is worded to follow "pid n,".
func (h *Host) describe(pid int, w wanted) (identity.Candidate, string) {
	// Most pids are not the shell of a command.
	c := h.shells.of(pid)
	if c == nil {
		return h.compare(pid, w)
	}

	// Bar a shell that has not become the process.
	if c.run.Front <= 0 || h.shellImage(c) != imageOther {
		return identity.Candidate{Proc: supervise.Proc{BootID: h.bootID, PID: pid}, Barred: isShell}, ""
	}

	// Compare the program that took the place of the shell.
	x, reason := h.compare(pid, w)
	switch {
	case reason != "":
		return x, reason
	case c.collected.Load(): // a later process may have the pid, so what was read may belong to it
		x.Barred = isShell
	case x.Misfit == "": // remember its command, because the caller will ask for its exit status
		h.fronts.add(x.Proc, c)
	}
	return x, ""
}

// compare is describe for a pid that may be the shell of a command. The start time is read before and after, so
// everything between belongs to one process.
func (h *Host) compare(pid int, w wanted) (c identity.Candidate, reason string) {
	c.Proc = supervise.Proc{BootID: h.bootID, PID: pid}

	// Reject what is not a live program.
	before, err := h.proc.Stat(pid)
	h.noteShortage(err)
	switch {
	case errors.Is(err, procfs.ErrGone):
		return c, "which does not run"
	case err != nil:
		return c, fmt.Sprintf("which cannot be read: %v", err)
	case before.Dead():
		return c, "which has ended"
	}

	// Bar what can never be a managed process.
	switch {
	case pid == 1 || pid == os.Getpid():
		c.Barred = "which is not a process to be managed"
	case before.Kernel():
		c.Barred = "which is a thread of the kernel"
	}

	// Compare name and owner.
	c.Name, c.Misfit = h.misfit(pid, &before, w)

	// Check that all of this was read from one process.
	after, err := h.proc.Stat(pid)
	h.noteShortage(err)
	if err != nil || after.Start != before.Start || after.Dead() {
		return c, "which has just ended"
	}
	boot, err := bootTime()
	if err != nil {
		return c, fmt.Sprintf("whose start time cannot be read: %v", err)
	}
	c.Start, c.StartedAt = after.Start, boot.Add(ticks(after.Start))
	return c, ""
}

// misfit says how the name and the owner of a process differ from the definition. The name is empty if it fits.
func (h *Host) misfit(pid int, st *procfs.Stat, w wanted) (name, text string) {
	var differs []string
	if w.name != "" {
		// The name that the kernel stores is read already, and usually it is the right one.
		if n := (names{comm: st.Comm()}); n.comm != w.name {
			if n = h.namesOf(pid, st); !n.match(w.name) {
				name = n.shown()
				differs = append(differs, fmt.Sprintf("runs as %s, definition says %s", name, w.name))
			}
		}
	}

	switch {
	case w.missing != "":
		differs = append(differs, fmt.Sprintf("user %s of the definition does not exist", w.missing))
	case w.owner != nil:
		r, e, err := h.proc.UIDs(pid)
		h.noteShortage(err)
		if err != nil {
			differs = append(differs, fmt.Sprintf("has an owner that cannot be read: %v", err))
		} else if r != w.owner.uid && e != w.owner.uid {
			differs = append(differs, fmt.Sprintf("runs as user %s, definition says user %s", h.userName(r), w.owner.name))
		}
	}
	return name, strings.Join(differs, "; ")
}

// namesOf reads the names of a process. Names that cannot be read (the executable of a kernel thread or of another
// account) do not count.
func (h *Host) namesOf(pid int, st *procfs.Stat) names {
	n := names{comm: st.Comm()}
	if exe, err := h.proc.Exe(pid); err == nil {
		n.exe = exe
	}
	args, err := h.proc.Args(pid, argBytes)
	h.noteShortage(err)
	if err == nil {
		n.args = args
	}
	return n
}
