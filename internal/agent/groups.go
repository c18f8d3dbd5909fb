package agent

import (
	"math"
	"slices"

	"github.com/gozzard/gozzard"
)

// maxGroups is the largest number of resource pools on one host.
const maxGroups = 4096

// setGroups replaces the resource pools of this host. It writes them to the journal without waiting for the disk,
// because the server sends them again with every session. They are in the journal so that they also apply after a
// restart without a server.
func (a *Agent) setGroups(cmd *gozzard.Command) {
	if !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}

	// Check them.
	groups := slices.DeleteFunc(slices.Clone(cmd.Groups), func(g gozzard.Group) bool { return !goodGroup(g) })
	if len(groups) > maxGroups {
		a.log.Warn("rejected the resource pools: too many", "pools", len(groups), "limit", maxGroups)
		return
	}
	if bad := len(cmd.Groups) - len(groups); bad > 0 {
		a.log.Warn("ignored invalid resource pools", "pools", bad)
	}

	// Store them, unless nothing has changed.
	a.mu.Lock()
	same := slices.Equal(a.state.groups, groups)
	if !same {
		if _, err := a.write(false, recordGroups, &entry{Groups: groups}); err != nil {
			a.log.Warn("cannot write the resource pools to the journal, they are only in memory", "err", err)
			a.state.groups = groups
		}
	}
	a.mu.Unlock()

	// Apply them.
	if !same {
		a.sup.SetGroups(slices.Clone(groups))
	}
}

// goodGroup reports whether a pool is valid.
func goodGroup(g gozzard.Group) bool {
	percent := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) } // false for NaN as well
	return gozzard.ValidateProcessName(g.Namespace) == nil && len(g.ID) <= gozzard.MaxNameBytes &&
		percent(g.CPULimit) && percent(g.MemLimit)
}
