package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
)

// OtherNamespaces stands for the namespaces that have no place in a Rollup. No namespace can have this name.
const OtherNamespaces = "(others)"

// spaceCount is what processes are counted by.
type spaceCount struct {
	space     uint32
	wanted    bool
	condition gozzard.Condition
	health    gozzard.Health
}

// Rollup has the sizes of the fleet, for metrics.
type Rollup struct {
	Processes []ProcessCount
	Folded    int // namespaces that are counted under OtherNamespaces

	// Hosts that are online, that are offline and have no process that should run, and that are offline and have one.
	Online, Offline, Lost int
}

// ProcessCount is a number of processes that have all of this in common.
type ProcessCount struct {
	Namespace string
	Wanted    bool // they should run
	Condition gozzard.Condition
	Health    gozzard.Health
	N         int
}

// Rollup counts the fleet. The counts of processes are kept up to date, so it looks at hosts only and at no process of a
// host that is online. Of the namespaces, those with the most processes have counts of their own.
func (x *Index) Rollup(namespaces int) (r Rollup) {
	counts := x.readCounts(&r)

	// Choose the namespaces that have counts of their own.
	size := map[string]int{}
	for _, c := range counts {
		size[c.Namespace] += c.N
	}
	names := make([]string, 0, len(size))
	for name := range size {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(size[b], size[a]), strings.Compare(a, b)) })
	own := map[string]bool{}
	for _, name := range names[:min(len(names), namespaces)] {
		own[name] = true
	}
	r.Folded = len(names) - len(own)

	// Add up the others.
	others := map[ProcessCount]int{}
	for _, c := range counts {
		if own[c.Namespace] {
			r.Processes = append(r.Processes, c)
			continue
		}
		n := c.N
		c.Namespace, c.N = OtherNamespaces, 0
		others[c] += n
	}
	for c, n := range others {
		c.N = n
		r.Processes = append(r.Processes, c)
	}
	return r
}

// readCounts reads what needs the lock.
func (x *Index) readCounts(r *Rollup) []ProcessCount {
	x.mu.RLock()
	defer x.mu.RUnlock()

	counts := make([]ProcessCount, 0, len(x.spaceCounts))
	for c, n := range x.spaceCounts {
		counts = append(counts, ProcessCount{x.spaces.at(c.space).name, c.wanted, c.condition, c.health, n})
	}
	for _, e := range x.hosts {
		switch {
		case !e.known:
		case e.Online:
			r.Online++
		case slices.ContainsFunc(e.rows, func(id uint32) bool { return x.rows.at(id).wanted == gozzard.StateRunning }):
			r.Lost++
		default:
			r.Offline++
		}
	}
	return counts
}
