package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Find collects the evidence about the process of a definition and decides by the rules of package identity. The group
// of a definition is its job.
func (h *Host) Find(q supervise.Query) (supervise.Found, error) {
	// Read the pid file, and look at what is on record.
	id := q.Spec.Identity
	e := identity.Evidence{Starting: q.Starting, Began: q.Began, Held: q.Held}
	hint := 0
	if e.NoName = "no pid file is defined"; id.PIDPath != "" {
		hint, e.PIDFileAt, e.NoName = readPIDFile(id.PIDPath)
	}
	if h.Alive(q.Held.Proc) {
		if c, reason := h.describe(q.Held.PID, id.ProcName); reason == "" && c.Proc == q.Held.Proc {
			e.Alive = &c
		}
	}

	// List the processes of the job.
	members, err := h.jobs.members(q.Key)
	if err != nil {
		return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", q.Key, err)
	}
	for _, pid := range members {
		c, reason := h.describe(pid, id.ProcName)
		if id.ProcName == "" {
			c.Misfit = "runs, but the definition names no program"
		}
		if reason == "" && c.Barred == "" && !isTaken(q, c.Proc) {
			e.Members = append(e.Members, c)
		}
	}

	// Look at the process that the pid file names.
	if hint != 0 {
		if c, reason := h.describe(hint, id.ProcName); reason != "" {
			e.NoName = fmt.Sprintf("its pid file %s names pid %d, %s", id.PIDPath, hint, reason)
		} else {
			if q.Taken != nil {
				c.Other = q.Taken(c.Proc, func(k gozzard.Key) bool { return h.jobs.has(k, hint) })
			}
			e.Named = &c
		}
	}

	// Decide.
	d := identity.Decide(e)
	f := supervise.Found{Verdict: d.Verdict, Orphans: d.Orphans, Reason: d.Reason, Against: d.Against}
	if d.Verdict != identity.Ours && d.Verdict != identity.Adopted {
		f.PIDFileAt, f.Near, f.Empty = e.PIDFileAt, d.Near, len(members) == 0
		return f, nil
	}
	f.Proc, f.StartedAt, f.How, f.Misfit = d.Main.Proc, d.Main.StartedAt, d.How, d.Main.Misfit

	// Give it a handle of the job, so that the name of the job lives as long as the process.
	if f.ByCgroup = slices.Contains(members, f.Proc.PID); f.ByCgroup {
		if err := h.jobs.give(q.Key, f.Proc); err != nil && !errors.Is(err, os.ErrProcessDone) {
			h.log.Warn("a restarted agent may find this process by pid file only", "ns", q.Key.Namespace,
				"proc", q.Key.Name, "err", err)
		}
	}

	return f, nil
}

// Members lists the processes of the job, and the process on record.
func (h *Host) Members(q supervise.Query) ([]supervise.Proc, error) {
	pids, err := h.jobs.members(q.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes of %s: %w", q.Key, err)
	}

	var procs []supervise.Proc
	for _, pid := range pids {
		if c, reason := h.describe(pid, ""); reason == "" && c.Barred == "" && !isTaken(q, c.Proc) {
			procs = append(procs, c.Proc)
		}
	}
	if h.Alive(q.Held.Proc) && !slices.Contains(procs, q.Held.Proc) && !isTaken(q, q.Held.Proc) {
		procs = append(procs, q.Held.Proc)
	}
	return procs, nil
}

// isTaken reports whether another definition has a process on record.
func isTaken(q supervise.Query, p supervise.Proc) bool {
	return q.Taken != nil && q.Taken(p, nil) != ""
}

// describe describes a live process and compares it with a definition. Everything is read through one handle, so it
// belongs to one process. The reason says why there is no such process. It is worded to follow "pid n,".
func (h *Host) describe(pid int, name string) (c identity.Candidate, reason string) {
	// Bar pids that can never be a managed process.
	c.Proc = supervise.Proc{BootID: h.bootID, PID: pid}
	switch {
	case pid == os.Getpid():
		c.Barred = "which is not a process to be managed"
		return c, ""
	case h.isShell(pid):
		c.Barred = "which is the shell of a running command"
		return c, ""
	}

	// Hold the process.
	process, err := openPID(pid, 0)
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return c, "which does not run"
	case err != nil:
		return c, fmt.Sprintf("which cannot be read: %v", err)
	}
	defer windows.CloseHandle(process)

	// Read its start time and compare its name.
	if c.Start, err = startOf(process); err != nil {
		return c, fmt.Sprintf("which cannot be read: %v", err)
	}
	c.StartedAt = startTime(c.Start)
	if name != "" {
		if n := namesOf(process); !n.match(trimProgram(name)) {
			c.Name = n.shown()
			c.Misfit = fmt.Sprintf("runs as %s, definition says %s", c.Name, name)
		}
	}

	// Reject a process that has ended and is only held open.
	if hasEnded(process) {
		return c, "which has ended"
	}
	return c, ""
}

// namesOf reads the names of a process, in lower case and with forward slashes, so that they can be compared. Names
// that cannot be read do not count.
func namesOf(process windows.Handle) names {
	var n names
	if image, err := imageOf(process); err == nil {
		n.exe = trimProgram(filepath.ToSlash(image))
		n.comm = filepath.Base(n.exe)
	}
	if args, err := argsOf(process); err == nil {
		for _, a := range args[:min(len(args), 4)] {
			n.args = append(n.args, trimProgram(filepath.ToSlash(a)))
		}
	}
	return n
}

// trimProgram makes names comparable: Windows ignores case in names, and the ending .exe may be left out.
func trimProgram(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".exe") }
