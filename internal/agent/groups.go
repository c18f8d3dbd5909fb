package agent

import (
	"math"
	"slices"

	"github.com/gozzard/gozzard"
)

// maxGroups bounds the pools of one host.
const maxGroups = 4096

// setGroups takes the pools of this host over: these and no others. They are written down without waiting, since
// the server says them again with every session, and are in force over a restart without it.
func (a *Agent) setGroups(cmd *gozzard.Command) {
	if !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}

	groups := slices.DeleteFunc(slices.Clone(cmd.Groups), func(g gozzard.Group) bool { return !goodGroup(g) })
	if len(groups) > maxGroups {
		a.log.Warn("pools were refused: too many", "pools", len(groups), "most", maxGroups)
		return
	}

	if bad := len(cmd.Groups) - len(groups); bad > 0 {
		a.log.Warn("pools that make no sense were left out", "pools", bad)
	}

	a.mu.Lock()
	same := slices.Equal(a.state.groups, groups)
	if !same {
		if _, err := a.write(false, recordGroups, &entry{Groups: groups}); err != nil {
			a.log.Warn("pools are kept in memory only", "error", err)
			a.state.groups = groups
		}
	}

	a.mu.Unlock()

	if !same {
		a.sup.SetGroups(slices.Clone(groups))
	}
}

func goodGroup(g gozzard.Group) bool {
	percent := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) } // not for NaN either
	return gozzard.ValidateName(g.Namespace) == nil && len(g.ID) <= gozzard.MaxNameBytes && percent(g.CPULimit) &&
		percent(g.MemLimit)
}
