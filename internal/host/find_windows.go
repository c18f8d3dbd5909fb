package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Find looks for the live process of a definition. A process in the job was started by this agent; if there are
// several, the pid file chooses, otherwise the oldest is taken. A pid outside of the job counts only when its name
// matches the definition.
func (h *Host) Find(key gozzard.Key, spec *gozzard.Spec) (supervise.Found, error) {
	// Read the pid file.
	id := spec.Identity
	var written time.Time
	hint, hintReason := 0, "no pid file is defined"
	if id.PIDPath != "" {
		hint, written, hintReason = readPIDFile(id.PIDPath)
	}

	// List the processes of the job.
	members, err := h.jobs.members(key)
	if err != nil {
		return supervise.Found{}, fmt.Errorf("cannot look for %s: %w", key, err)
	}

	// Choose one of them, or the process that the pid file names.
	p, groupReason := h.findMember(members, hint, id.ProcName)
	if p.IsZero() && hint != 0 {
		if p, hintReason = h.verify(hint, id.ProcName); p.IsZero() {
			hintReason = fmt.Sprintf("pid file %s names pid %d, %s", id.PIDPath, hint, hintReason)
		}
	}

	// Explain why no process was found.
	if p.IsZero() {
		reasons := slices.DeleteFunc([]string{groupReason, hintReason}, func(s string) bool { return s == "" })
		return supervise.Found{Reason: strings.Join(reasons, "; "), Empty: len(members) == 0, PIDFileAt: written}, nil
	}

	// Give it a handle of the job, so that the name of the job lives as long as the process.
	byJob := slices.Contains(members, p.PID)
	if byJob {
		if err := h.jobs.give(key, p); err != nil && !errors.Is(err, os.ErrProcessDone) {
			h.log.Warn("a restarted agent may find this process by pid file only", "ns", key.Namespace,
				"proc", key.Name, "err", err)
		}
	}

	return supervise.Found{Proc: p, StartedAt: startTime(p.Start), ByCgroup: byJob}, nil
}

// findMember chooses among the processes of the job. Without a name to compare, the pid file decides alone.
func (h *Host) findMember(members []int, hint int, name string) (supervise.Proc, string) {
	if name == "" {
		return supervise.Proc{}, ""
	}

	var best supervise.Proc
	others := 0
	for _, pid := range members {
		p, _ := h.verify(pid, name)
		switch {
		case p.IsZero():
			others++
		case pid == hint:
			return p, ""
		case best.IsZero(), p.Start < best.Start, p.Start == best.Start && p.PID < best.PID:
			best = p
		}
	}

	if others == 0 {
		return best, "nothing that was started is running"
	}

	return best, fmt.Sprintf("of the started processes (%d running) none is %q", others, name)
}

// verify checks that a pid is a live process with the given name, and not a shell of a running command. Everything is
// read through one handle, so it belongs to one process. The reason is worded to follow "pid n,".
func (h *Host) verify(pid int, name string) (supervise.Proc, string) {
	// Reject pids that can never be a managed process.
	none := supervise.Proc{}
	if pid == os.Getpid() {
		return none, "which is not a process to be managed"
	}
	if h.isShell(pid) {
		return none, "which is the shell of a running command"
	}

	// Hold the process.
	process, err := openPID(pid, 0)
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return none, "which does not run"
	case err != nil:
		return none, fmt.Sprintf("which cannot be read: %v", err)
	}
	defer windows.CloseHandle(process)

	// Read its start time and compare its name.
	start, err := startOf(process)
	if err != nil {
		return none, fmt.Sprintf("which cannot be read: %v", err)
	}
	if name != "" {
		n := namesOf(process)
		if !n.match(trimProgram(name)) {
			return none, fmt.Sprintf("whose command is %q, not %q", n.shown(), name)
		}
	}

	// Reject a process that has ended and is only held open.
	if hasEnded(process) {
		return none, "which has ended"
	}

	return supervise.Proc{BootID: h.bootID, PID: pid, Start: start}, ""
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
