package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// manyInstances is how many processes of one name are grouped on a terminal.
const manyInstances = 50

// groupFlags say whether processes are listed one by one or by name.
type groupFlags struct{ group, never bool }

func (g *groupFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&g.group, "group", false, "one row for each name, with counts by state")
	f.BoolVar(&g.never, "no-group", false, "one row for each process, however many there are")
	cmd.MarkFlagsMutuallyExclusive("group", "no-group")
}

// check rejects an order that groups do not have.
func (g *groupFlags) check(sort string) error {
	if g.group && !groupsHave(sort) {
		return usage("--sort %s is not possible with --group: use name, state, mem or restarts", sort)
	}
	return nil
}

// groupsHave reports whether groups can be sorted by a key.
func groupsHave(sort string) bool { return sort != "host" && sort != "cpu" && sort != "uptime" }

// nameGroup is the processes of one name.
type nameGroup struct {
	namespace, name string
	hosts           map[string]bool
	states          map[string]int
	restarts        int
	mem             int64
}

// groupByName makes a group for each name, in the order of the rows.
func groupByName(rows []client.Process) []*nameGroup {
	var all []*nameGroup
	byKey := map[[2]string]*nameGroup{}
	for i := range rows {
		p := &rows[i]
		key := [2]string{p.Namespace, p.Name}
		g := byKey[key]
		if g == nil {
			g = &nameGroup{namespace: p.Namespace, name: p.Name, hosts: map[string]bool{}, states: map[string]int{}}
			byKey[key] = g
			all = append(all, g)
		}

		g.hosts[processHost(p)] = true
		g.states[p.State]++
		g.restarts += p.Restarts
		if isUp(p) {
			g.mem += p.MemBytes
		}
	}
	return all
}

// largestGroup is the number of processes in the largest group.
func largestGroup(groups []*nameGroup) (n int) {
	for _, g := range groups {
		n = max(n, g.count())
	}
	return n
}

func (g *nameGroup) count() (n int) {
	for _, c := range g.states {
		n += c
	}
	return n
}

// sortGroups sorts groups by a key of --sort. By state, the one with the worst process is first.
func (s *sortFlags) sortGroups(groups []*nameGroup, by string) {
	slices.SortStableFunc(groups, func(a, b *nameGroup) int {
		d := 0
		switch by {
		case "state":
			d = compareStates(a, b)
		case "mem":
			d = cmp.Compare(b.mem, a.mem)
		case "restarts":
			d = cmp.Compare(b.restarts, a.restarts)
		}
		names := cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
		if by == "name" {
			d = names
		}
		if s.reverse {
			d = -d
		}
		return cmp.Or(d, names)
	})
}

// compareStates compares the worst states of two groups, and then how many processes are in it.
func compareStates(a, b *nameGroup) int {
	aw, bw := worstFirst(a.states)[0], worstFirst(b.states)[0]
	return cmp.Or(cmp.Compare(viewState(aw).rank, viewState(bw).rank), cmp.Compare(b.states[bw], a.states[aw]))
}

// groupTable is the table of groups.
func groupTable(groups []*nameGroup, p painter) *textTable {
	t := newTable("NAMESPACE", "NAME", "PROCESSES", "HOSTS", "STATE", "RESTARTS", "MEM")
	for _, g := range groups {
		mem := ""
		if g.mem > 0 {
			mem = mebibytes(g.mem)
		}
		t.addDecorated(func(i int, cell string) string {
			if i == 4 {
				return countText(g.states, p)
			}
			return cell
		}, g.namespace, g.name, strconv.Itoa(g.count()), strconv.Itoa(len(g.hosts)), "", strconv.Itoa(g.restarts), mem)
	}
	return t
}
