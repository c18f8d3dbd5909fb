package topology

import (
	"cmp"
	"math"
	"slices"

	"github.com/gozzard/gozzard"
)

// role is what instance numbers are unique in: a module and an alias in it.
type role struct {
	module int
	alias  string
}

// Number gives every process of a business its instances, by process id, with the numbers of the last time where
// they can stay.
//
// Within a role every process has a host number, and instance local of it has number (host number - 1) * per +
// local, where per is the largest count of the role. When per changes, all of the role are numbered again from 1,
// in order of their ids. When it does not, a process that was there keeps its host number, whatever its count
// becomes, and a new one gets a number beyond all that were given: the largest of the last time plus its place
// among the role's processes. That leaves gaps, and the same gaps as in the numbers that callers have now.
//
// A process that changed its alias or module is a new one there. Two processes of one alias on one host would be
// the same to the fleet: they are refused together, whatever modules they are in.
func Number(old []Numbers, b *Business) ([]Numbers, error) {
	if faults := b.clashes(); len(faults) > 0 {
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "processes of one name on one host",
			Faults: faults}
	}

	given := make(map[int]Numbers, len(old))
	last := map[role]Numbers{} // the largest of each role
	for _, n := range old {
		given[n.Process] = n
		r := role{n.Module, n.Alias}
		top := last[r]
		last[r] = Numbers{HostNum: max(top.HostNum, n.HostNum), Per: max(top.Per, n.Per)}
	}

	now := map[role][]Numbers{}
	total := 0
	b.each(func(s spot) {
		r := role{s.module.ID, s.process.Name}
		now[r] = append(now[r], Numbers{Process: s.process.ID, Module: r.module, Alias: r.alias,
			Count: s.process.Count()})
		total++
	})

	all := make([]Numbers, 0, total)
	for r, list := range now {
		slices.SortFunc(list, byProcess)
		numberRole(list, last[r], given)
		all = append(all, list...)
	}

	slices.SortFunc(all, byProcess)
	return all, nil
}

// numberRole numbers the processes of one role, sorted by id.
func numberRole(list []Numbers, last Numbers, given map[int]Numbers) {
	per := 0
	for i := range list {
		per = max(per, list[i].Count)
	}

	anew := per != last.Per || last.HostNum+len(list) > math.MaxInt32 // none are left: begin again rather than never
	if anew {
		last.HostNum = 0
	}

	for i := range list {
		n := &list[i]
		n.Per = per
		n.HostNum = last.HostNum + i + 1
		if g := given[n.Process]; !anew && g.Module == n.Module && g.Alias == n.Alias {
			n.HostNum = g.HostNum
		}
	}
}

func byProcess(a, b Numbers) int { return cmp.Compare(a.Process, b.Process) }
