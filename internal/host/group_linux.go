package host

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard/internal/identity"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// The group of a definition is everything that its commands have started. With cgroup v2 the kernel knows it. Without
// it, marks_linux.go finds it.

// members lists the processes of the group of a definition, without shells that are known to end.
func (h *Host) members(q supervise.Query, w wanted) ([]int, error) {
	if h.groups == nil {
		return h.marks.members(h, q, w, false)
	}
	pids, err := h.groups.members(q.Key)
	if err != nil {
		return nil, err
	}
	left, err := h.leftBehind(q, w)
	return union(pids, left), err
}

// leftBehind lists what an adopted process that has ended left behind: it was not in the cgroup, nor are its workers.
func (h *Host) leftBehind(q supervise.Query, w wanted) ([]int, error) {
	if q.Held.How != identity.HowPIDFile || h.Alive(q.Held.Proc) {
		return nil, nil
	}
	all, err := h.allStats()
	if err != nil {
		return nil, err
	}

	var pids []int
	for pid, st := range all {
		if h.inLostSession(all, &st, q, w) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// inLostSession reports whether a process is in the session that the process on record led until it ended, and is the
// same program. The kernel does not give the number of a session away while a process is in it. But when the session
// was empty, another daemon may have got the number and ended too, so the name must fit. Owner and environment need
// not: workers often change both.
func (h *Host) inLostSession(all map[int]procfs.Stat, st *procfs.Stat, q supervise.Query, w wanted) bool {
	held := q.Held
	if held.IsZero() || held.BootID != h.bootID || st.Session != held.PID || st.Start < held.Start || st.Dead() {
		return false
	}
	if leader, there := all[held.PID]; there && (leader.Start != held.Start || !leader.Dead()) {
		return false
	}
	if agent, folder, _ := h.groupOf(st.PID); agent != "" && (agent != h.instance || folder != keyFolder(q.Key)) {
		return false // a command of another definition has started it
	}
	return w.name != "" && h.namesOf(st.PID, st).match(w.name)
}

// union adds pids that are not in the list.
func union(pids, more []int) []int {
	for _, pid := range more {
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Members lists the live processes that belong to the process of a definition.
func (h *Host) Members(q supervise.Query) ([]supervise.Proc, error) {
	// List the group.
	w, err := h.wantedBy(q.Spec)
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes of %s: %w", q.Key, err)
	}
	pids, err := h.members(q, w)
	if err != nil {
		return nil, fmt.Errorf("cannot list the processes of %s: %w", q.Key, err)
	}

	// A process that was adopted is not in the group: its descendants belong to it.
	if h.groups != nil && !slices.Contains(pids, q.Held.PID) && h.Alive(q.Held.Proc) {
		all, err := h.allStats()
		if err != nil {
			return nil, fmt.Errorf("cannot list the processes of %s: %w", q.Key, err)
		}
		for pid, st := range all {
			if !st.Dead() && descends(all, pid, q.Held.PID) && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}

	// Identify them, and leave out what belongs to another definition.
	var procs []supervise.Proc
	for _, pid := range pids {
		st, err := h.proc.Stat(pid)
		if err != nil || st.Dead() {
			continue
		}
		p := supervise.Proc{BootID: h.bootID, PID: pid, Start: st.Start}
		if (pid != q.Held.PID || p == q.Held.Proc) && !h.isTaken(q, p) {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// Clear kills the group of a definition and the given processes, and waits until they are gone. It spares processes
// that another definition has on record.
func (h *Host) Clear(q supervise.Query, also []supervise.Proc) error {
	h.ended.Store(true)
	if err := h.clearGroup(q); err != nil {
		return fmt.Errorf("cannot clear %s: %w", q.Key, err)
	}
	also = slices.DeleteFunc(slices.Clone(also), func(p supervise.Proc) bool { return h.isTaken(q, p) })
	if err := h.killAll(func() ([]supervise.Proc, error) { return also, nil }); err != nil {
		return fmt.Errorf("cannot clear %s: %w", q.Key, err)
	}
	return nil
}

// clearGroup kills the group of a definition.
func (h *Host) clearGroup(q supervise.Query) error {
	// Without cgroups, kill what can be found, one by one.
	if h.groups == nil {
		w, err := h.wantedBy(q.Spec)
		if err != nil {
			return err
		}
		return h.killAll(func() ([]supervise.Proc, error) {
			pids, err := h.marks.members(h, q, w, true)
			return h.mayKill(q, pids), err
		})
	}

	// What an adopted process left behind is in no group.
	w, err := h.wantedBy(q.Spec)
	if err != nil {
		return err
	}
	err = h.killAll(func() ([]supervise.Proc, error) {
		left, err := h.leftBehind(q, w)
		return h.mayKill(q, left), err
	})
	if err != nil {
		return err
	}

	// Usually nothing is left, or the kernel kills the whole group at once.
	if h.groups.isEmpty(q.Key) {
		return h.groups.sweep(keyFolder(q.Key))
	}
	pids, err := h.groups.members(q.Key)
	if err != nil {
		return err
	}
	victims := h.mayKill(q, pids)
	if len(victims) == len(pids) {
		return h.groups.clear(q.Key)
	}

	// Spare what another definition has adopted.
	return h.killAll(func() ([]supervise.Proc, error) {
		pids, err := h.groups.members(q.Key)
		return h.mayKill(q, pids), err
	})
}

// mayKill identifies the processes that may be killed for a definition.
func (h *Host) mayKill(q supervise.Query, pids []int) []supervise.Proc {
	procs := make([]supervise.Proc, 0, len(pids))
	for _, pid := range pids {
		p := supervise.Proc{BootID: h.bootID, PID: pid}
		if st, err := h.proc.Stat(pid); err == nil {
			p.Start = st.Start
		}
		if !h.isTaken(q, p) {
			procs = append(procs, p)
		}
	}
	return procs
}

// killAll kills what list returns, and repeats until nothing of it is left, because processes may fork in between. What
// was listed once stays known.
func (h *Host) killAll(list func() ([]supervise.Proc, error)) error {
	deadline := time.Now().Add(clearWait)
	victims := map[supervise.Proc]bool{}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		// Find them.
		found, err := list()
		if err != nil {
			return err
		}
		for _, p := range found {
			victims[p] = true
		}

		// Kill them. The next round sees whether they have ended.
		for p := range victims {
			err := h.signal(p, unix.SIGKILL)
			switch {
			case errors.Is(err, os.ErrProcessDone):
				delete(victims, p)
			case err != nil:
				return fmt.Errorf("cannot kill pid %d: %w", p.PID, err)
			}
		}

		// Finish when none is left, or when the time is over.
		if len(victims) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes did not end within %v of being killed", len(victims), clearWait)
		}
		time.Sleep(pause)
	}
}

// groupOf returns the agent, the folder of the key and the run whose group a process is in. They are empty if it is in
// none.
func (h *Host) groupOf(pid int) (agent, folder, run string) {
	if h.groups == nil {
		m := h.readMark(pid)
		if m.agent == "" {
			return "", "", ""
		}
		return m.agent, keyFolder(m.key), m.run
	}

	path, err := h.proc.Cgroup(pid)
	if err != nil {
		return "", "", ""
	}
	_, own, ok := strings.Cut(path+"/", "/gozzard/")
	if !ok {
		return "", "", ""
	}
	parts := strings.SplitN(own, "/", 4)
	if len(parts) < 4 {
		return "", "", ""
	}
	return parts[0], parts[1], parts[2]
}

// allStats reads all processes of the machine.
func (h *Host) allStats() (map[int]procfs.Stat, error) {
	pids, err := h.proc.PIDs(nil)
	if err != nil {
		return nil, err
	}
	all := make(map[int]procfs.Stat, len(pids))
	for _, pid := range pids {
		if st, err := h.proc.Stat(pid); err == nil { // the others have ended
			all[pid] = st
		}
	}
	return all, nil
}

// userName is the name of an account for messages.
func (h *Host) userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
