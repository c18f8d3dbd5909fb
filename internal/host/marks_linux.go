package host

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Without cgroup v2 (an ordinary account, a machine with cgroup v1 only, many containers) the group of a definition is
// found by
//
//   - the mark: environment variables that every command gets and that its children inherit,
//   - the descendants of the process on record and of running commands, and their sessions,
//   - the session that the process on record led until it ended, for processes of the same name,
//   - memory: what was found once and is still the same process.
//
// A process can hide from this if it loses its parent, makes a session of its own and clears its environment. Then only
// its pid file leads to it.
//
// A mark is no secret, and any account can set these variables. So it counts only on processes of the account of the
// definition, or of the agent itself: these accounts could end or replace the process anyway.

const (
	markAgent     = "GOZZARD_AGENT"
	markNamespace = "GOZZARD_NAMESPACE"
	markName      = "GOZZARD_NAME"
	markRun       = "GOZZARD_RUN"

	environBytes = 32 << 10
	// A child has the environment of the agent until it executes its program. So the absence of a mark counts only
	// for processes that are older.
	markAge = 2 * time.Second
)

// mark says which command of which definition has started a process.
type mark struct {
	agent string
	key   gozzard.Key
	run   string
}

// environment is the mark as environment variables.
func (m mark) environment() []string {
	return []string{markAgent + "=" + m.agent, markNamespace + "=" + m.key.Namespace, markName + "=" + m.key.Name,
		markRun + "=" + m.run}
}

// marks finds groups without cgroups.
type marks struct {
	mu    sync.Mutex
	cache map[supervise.Proc]mark                     // of processes that were read before
	seen  map[gozzard.Key]map[supervise.Proc]struct{} // members that were found before
}

// members lists the live processes of the group of a definition. With once it also lists what commands have started
// for their own use.
func (m *marks) members(h *Host, q supervise.Query, w wanted, once bool) ([]int, error) {
	all, err := h.allStats()
	if err != nil {
		return nil, err
	}
	roots := h.roots(q, all)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune(h, all)

	// Look at every process.
	var pids []int
	seen := map[supervise.Proc]struct{}{}
	for pid, st := range all {
		if st.Dead() || st.Kernel() {
			continue
		}
		p := supervise.Proc{BootID: h.bootID, PID: pid, Start: st.Start}
		_, known := m.seen[q.Key][p]
		switch {
		case known, belongs(all, pid, roots), h.inLostSession(all, &st, q, w):
		case m.isMarked(h, p, &st, q.Key, w, once):
		default:
			continue
		}
		if !h.shells.has(pid) {
			seen[p] = struct{}{}
		}
		pids = append(pids, pid)
	}

	// Remember them: they belong to the group even if what leads to them is gone.
	if m.seen == nil {
		m.seen = map[gozzard.Key]map[supervise.Proc]struct{}{}
	}
	if delete(m.seen, q.Key); len(seen) > 0 && !once {
		m.seen[q.Key] = seen
	}
	slices.Sort(pids)
	return pids, nil
}

// roots lists the live processes whose descendants belong to the group: the process on record, and the shells of
// commands that may become the process.
func (h *Host) roots(q supervise.Query, all map[int]procfs.Stat) []int {
	roots := h.shells.leaders(q.Key)
	if st, ok := all[q.Held.PID]; ok && q.Held.BootID == h.bootID && st.Start == q.Held.Start && !st.Dead() {
		roots = append(roots, q.Held.PID)
	}
	return roots
}

// belongs reports whether a process is one of the roots, descends from one, or is in the session that one leads.
func belongs(all map[int]procfs.Stat, pid int, roots []int) bool {
	for _, root := range roots {
		if descends(all, pid, root) || all[root].Session == root && all[pid].Session == root {
			return true
		}
	}
	return false
}

// isMarked reports whether a process carries the mark of a key. The caller holds mu.
func (m *marks) isMarked(h *Host, p supervise.Proc, st *procfs.Stat, key gozzard.Key, w wanted, once bool) bool {
	x, cached := m.cache[p]
	if !cached {
		x = h.readMark(p.PID)
		boot, err := bootTime()
		if x.agent != "" || err == nil && time.Since(boot.Add(ticks(st.Start))) > markAge {
			m.cache[p] = x
		}
	}
	if x.agent != h.instance || x.key != key || !once && !strings.HasPrefix(x.run, keptPrefix) {
		return false
	}

	r, e, err := h.proc.UIDs(p.PID)
	owned := func(uid uint32) bool { return r == uid || e == uid }
	return err == nil && (owned(h.self.uid) || w.owner != nil && owned(w.owner.uid))
}

// prune forgets processes that have ended. The caller holds mu.
func (m *marks) prune(h *Host, all map[int]procfs.Stat) {
	if m.cache == nil {
		m.cache = map[supervise.Proc]mark{}
	}
	for p := range m.cache {
		if st, ok := all[p.PID]; !ok || st.Start != p.Start {
			delete(m.cache, p)
		}
	}
}

// readMark reads the mark of a process. It is empty if there is none, or if the agent may not read it.
func (h *Host) readMark(pid int) (m mark) {
	env, err := h.proc.Environ(pid, environBytes)
	if err != nil {
		return m
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case markAgent:
			m.agent = value
		case markNamespace:
			m.key.Namespace = value
		case markName:
			m.key.Name = value
		case markRun:
			m.run = value
		}
	}
	return m
}
