package host

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// remains is what a command left running when its agent ended.
type remains struct {
	*slot
	spare  func(gozzard.Key, supervise.Proc) bool
	looked bool                    // the first look has decided that something must be ended
	known  map[supervise.Proc]bool // processes that were found once; they may lose their parent
	killed map[supervise.Proc]bool
	left   []supervise.Proc // what the last look found
	err    error            // of the last look
}

func newRemains(s *slot, spare func(gozzard.Key, supervise.Proc) bool) *remains {
	if spare == nil {
		spare = func(gozzard.Key, supervise.Proc) bool { return false }
	}
	return &remains{slot: s, spare: spare, known: map[supervise.Proc]bool{}, killed: map[supervise.Proc]bool{}}
}

// EndCommands ends the commands of an earlier run of the agent that still run. It waits a few seconds for their end.
func (h *Host) EndCommands(spare func(gozzard.Key, supervise.Proc) bool) []supervise.Leftover {
	var all []*remains
	for _, s := range h.ledger.leftovers() {
		all = append(all, newRemains(s, spare))
	}

	h.endAll(all)

	var out []supervise.Leftover
	for _, r := range all {
		for p := range r.killed {
			h.collect(p) // after an upgrade in place they are children of this program
		}
		l := supervise.Leftover{Key: r.Key, Op: r.Op, Action: r.Action, Ended: len(r.killed)}
		switch {
		case len(r.left) > 0:
			l.Err = errLeft(r.left, r.err)
		case r.err != nil:
			l.Err = r.err
		default:
			h.ledger.end(r.slot)
		}
		if l.Ended > 0 || l.Err != nil {
			out = append(out, l)
		}
	}

	h.ended.Store(true)
	return out
}

// endAll kills what commands left running, and repeats until nothing is left or the time is over.
func (h *Host) endAll(all []*remains) {
	todo := slices.Clone(all)
	deadline := time.Now().Add(killWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		todo = slices.DeleteFunc(todo, h.endOnce)
		if len(todo) == 0 || time.Now().After(deadline) {
			return
		}
		time.Sleep(pause)
	}
}

// endOnce kills what a command left running. It reports whether nothing was left.
func (h *Host) endOnce(r *remains) (done bool) {
	// Find the processes of the command.
	r.left = nil
	var members []procfs.Stat
	if members, r.err = h.membersOf(r); r.err != nil {
		return false
	}

	// Leave what a command has left that came to its end: it is the process.
	if !r.looked {
		if r.Keeps && !h.commandLives(r, members) {
			return true
		}
		r.looked = true
	}

	// Choose what must end. The shell goes first: when the program that it waits for ends, it would go on.
	victims := h.victims(r, members)
	slices.SortFunc(victims, func(a, b supervise.Proc) int {
		first := func(p supervise.Proc) int {
			if p == r.leader() {
				return 0
			}
			return 1
		}
		return cmp.Or(first(a)-first(b), cmp.Compare(a.Start, b.Start), a.PID-b.PID)
	})

	// Kill it. The next look sees whether it has ended.
	if r.Group != "" && len(victims) > 0 && len(victims) == len(members) {
		r.err = killMembers(r.Group) // also those that are forked at this moment
	}
	for _, p := range victims {
		r.killed[p] = true
		if err := h.Signal(p, supervise.SignalKill); err != nil && !errors.Is(err, os.ErrProcessDone) {
			r.err = err
		}
	}
	r.left = victims
	return len(victims) == 0
}

// commandLives reports whether the shell of a command still runs, or what took its place. If the agent ended before
// it knew the shell, a process with its command line is taken for it.
func (h *Host) commandLives(r *remains, members []procfs.Stat) bool {
	if r.PID != 0 {
		return h.Alive(r.leader())
	}
	return slices.ContainsFunc(members, func(st procfs.Stat) bool { return h.isShell(r, st.PID) })
}

// isShell reports whether a process is the shell of a command, or a copy of it that has executed no program.
func (h *Host) isShell(r *remains, pid int) bool {
	if r.Image == "" {
		return false
	}
	args, err := h.proc.Args(pid, argBytes)
	return err == nil && imageOf(args) == r.Image
}

// membersOf lists the live processes of a command.
func (h *Host) membersOf(r *remains) ([]procfs.Stat, error) {
	// Find them in the group, or by session and mark.
	var found []procfs.Stat
	if r.Group != "" {
		pids, err := treeProcs(r.Group, nil)
		if err != nil {
			return nil, err
		}
		for _, pid := range pids {
			if st, err := h.proc.Stat(pid); err == nil && !st.Dead() {
				found = append(found, st)
			}
		}
	} else {
		var err error
		if found, err = h.withoutGroup(r); err != nil {
			return nil, err
		}
	}

	// Add the shell, and what was found before.
	if r.PID != 0 {
		r.known[r.leader()] = true
	}
	for p := range r.known {
		if slices.ContainsFunc(found, func(st procfs.Stat) bool { return st.PID == p.PID }) {
			continue
		}
		if st, err := h.proc.Stat(p.PID); err == nil && st.Start == p.Start && !st.Dead() {
			found = append(found, st)
		}
	}
	for _, st := range found {
		r.known[supervise.Proc{BootID: h.bootID, PID: st.PID, Start: st.Start}] = true
	}
	return found, nil
}

// withoutGroup lists the live processes of a command that has no group: the session and the descendants of its shell
// while the shell lives, and what carries the mark of the run. When the shell has ended, its number may belong to
// another session.
func (h *Host) withoutGroup(r *remains) ([]procfs.Stat, error) {
	all, err := h.allStats()
	if err != nil {
		return nil, err
	}

	var found []procfs.Stat
	lives := h.Alive(r.leader())
	for pid, st := range all {
		switch {
		case st.Dead(), st.Kernel(), st.Start < r.Start:
		case lives && (st.Session == r.PID || descends(all, pid, r.PID)), h.hasRun(r, st):
			found = append(found, st)
		}
	}
	return found, nil
}

// execWait is how long a process may be without environment: while it executes a program, it has none.
const execWait = 20 * time.Millisecond

// hasRun reports whether a process carries the mark of a run. Any account can set these variables, so they count only on
// processes of the account of the command, and not on programs that have gained privileges.
func (h *Host) hasRun(r *remains, st procfs.Stat) bool {
	if uid, effective, err := h.proc.UIDs(st.PID); err != nil || uid != r.UID || effective != r.UID {
		return false
	}
	m := h.readMark(st.PID)
	for end := time.Now().Add(execWait); m.run == "" && st.Session == r.PID && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		m = h.readMark(st.PID)
	}
	return m.run == r.Run && m.key == r.Key
}

// victims are the processes that must end: all but the process of the definition and its descendants.
func (h *Host) victims(r *remains, members []procfs.Stat) []supervise.Proc {
	parents := map[int]int{}
	spared := map[int]bool{}
	for _, st := range members {
		parents[st.PID] = st.PPID
		spared[st.PID] = h.isSpared(r, st)
	}

	var out []supervise.Proc
	for _, st := range members {
		own := false
		for pid, n := st.PID, 0; pid != 0 && n <= len(members) && !own; pid, n = parents[pid], n+1 {
			own = spared[pid]
		}
		if !own {
			out = append(out, supervise.Proc{BootID: h.bootID, PID: st.PID, Start: st.Start})
		}
	}
	return out
}

// isSpared reports whether a process of a command is the process of the definition, which has come up already. What a
// stop or version command starts never is. The shell is it only if it has become the process.
func (h *Host) isSpared(r *remains, st procfs.Stat) bool {
	p := supervise.Proc{BootID: h.bootID, PID: st.PID, Start: st.Start}
	switch {
	case r.killed[p]: // a process that ends has no command line any more
		return false
	case r.spare(r.Key, p):
		return true
	case !r.Keeps, p == r.leader() && !r.Front, h.isShell(r, st.PID):
		return false
	}

	var owner *account
	if r.Owner != nil {
		owner = &account{uid: *r.Owner, name: strconv.Itoa(int(*r.Owner))}
	}
	if r.ProcName == "" {
		if r.PIDPath == "" {
			return false
		}
		if hint, _, _ := h.readPIDFile(r.PIDPath, owner); hint != st.PID {
			return false
		}
	}
	found, reason := h.compare(st.PID, wanted{name: r.ProcName, owner: owner})
	return reason == "" && found.Barred == "" && found.Misfit == "" && found.Proc == p
}
