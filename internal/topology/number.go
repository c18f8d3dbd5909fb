package topology

import (
	"cmp"
	"math"
	"slices"

	"github.com/gozzard/gozzard"
)

// role is a module and an alias in it. Instance numbers are unique within a role.
type role struct {
	module int
	alias  string
}

// Number gives every process of a business its instance numbers. The result is sorted by process id. old has the
// numbers of the last state, which processes keep where possible.
//
// Within a role every process has a host number. The instance with a local number has the instance number
// (host number - 1) * per + local, where per is the largest count of the role. When per changes, all processes of the
// role get new host numbers from 1, in the order of their ids. When it does not change, a process that was there keeps
// its host number, also when its count changes. A new process gets a host number above all that were used: the largest
// of the last state plus the position of the process in the role. That leaves gaps. BlueKing's GSEKit leaves the same
// gaps, so callers find the numbers that they know.
//
// A process that changed its alias or module is a new process in its new role. Number rejects processes with the same
// alias on the same host, in any modules, because they would have the same key.
func Number(old []Numbers, b *Business) ([]Numbers, error) {
	if faults := b.clashes(); len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid,
			Message: "several processes have the same name on the same host", Faults: faults}
	}

	// Find the last numbers of each process and the largest of each role.
	given := make(map[int]Numbers, len(old))
	last := map[role]Numbers{}
	for _, n := range old {
		given[n.Process] = n
		r := role{n.Module, n.Alias}
		top := last[r]
		last[r] = Numbers{HostNum: max(top.HostNum, n.HostNum), Per: max(top.Per, n.Per)}
	}

	// Group the processes by role.
	now := map[role][]Numbers{}
	total := 0
	b.each(func(s processAt) {
		r := role{s.module.ID, s.process.Name}
		now[r] = append(now[r], Numbers{Process: s.process.ID, Module: r.module, Alias: r.alias,
			Count: s.process.Count()})
		total++
	})

	// Number each role.
	all := make([]Numbers, 0, total)
	for r, list := range now {
		slices.SortFunc(list, byProcess)
		numberRole(list, last[r], given)
		all = append(all, list...)
	}

	slices.SortFunc(all, byProcess)
	return all, nil
}

// numberRole numbers the processes of one role, which are sorted by id. last has the largest values of the last state,
// given the last numbers by process.
func numberRole(list []Numbers, last Numbers, given map[int]Numbers) {
	per := 0
	for i := range list {
		per = max(per, list[i].Count)
	}

	// Start again from 1 when per has changed, or when the host numbers are used up.
	restart := per != last.Per || last.HostNum+len(list) > math.MaxInt32
	if restart {
		last.HostNum = 0
	}

	for i := range list {
		n := &list[i]
		n.Per = per
		n.HostNum = last.HostNum + i + 1
		if g := given[n.Process]; !restart && g.Module == n.Module && g.Alias == n.Alias {
			n.HostNum = g.HostNum
		}
	}
}

func byProcess(a, b Numbers) int { return cmp.Compare(a.Process, b.Process) }
