package index

import (
	"cmp"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

// maxComparedRows is up to how many rows are sorted by comparing them. More are sorted by counting, which needs a table
// of all ranks but no comparisons.
const maxComparedRows = 512

// sortedPage appends the rows at positions from to to-1 of the sorted set. It sorts only what the page needs: for each
// key it counts the rows of each rank, and sorts by the next key only the ranks that reach into the page.
func (c *columns) sortedPage(page []uint32, rows rowSet, total int, keys []topology.Order, from, to int) []uint32 {
	return c.sortInto(page, rows.appendRange(make([]uint32, 0, total), 0, total), keys, from, to)
}

// sortInto is sortedPage for rows in the order of their ids.
func (c *columns) sortInto(page, rows []uint32, keys []topology.Order, from, to int) []uint32 {
	switch {
	case len(keys) == 0 || keys[0] == topology.Order{By: topology.ByProcess}:
		return append(page, rows[from:to]...)
	case keys[0].By == topology.ByProcess:
		for i := from; i < to; i++ {
			page = append(page, rows[len(rows)-1-i])
		}
		return page
	case len(rows) <= maxComparedRows:
		c.sortByComparing(rows, keys)
		return append(page, rows[from:to]...)
	}
	return c.sortByCounting(page, rows, keys, from, to)
}

func (c *columns) sortByComparing(rows []uint32, keys []topology.Order) {
	slices.SortFunc(rows, func(a, b uint32) int {
		for _, k := range keys {
			if n := cmp.Compare(c.rank(k.By, a), c.rank(k.By, b)); n != 0 {
				if k.Descending {
					return -n
				}
				return n
			}
		}
		return cmp.Compare(a, b)
	})
}

// sortByCounting is a counting sort by the first key. It continues with the other keys inside each rank.
func (c *columns) sortByCounting(page, rows []uint32, keys []topology.Order, from, to int) []uint32 {
	// Count the rows of each rank, and add the counts up.
	ranks := c.ranks(keys[0].By)
	rank := c.ranker(keys[0], len(rows))
	start := make([]int, ranks+1) // where each rank begins among the sorted rows
	for _, row := range rows {
		start[rank(row)+1]++
	}

	for r := range ranks {
		start[r+1] += start[r]
	}

	// Sort the rows of the ranks that the page needs.
	first := uint32(rankAt(start, from))
	last := uint32(rankAt(start, to-1))
	next := make([]int, last-first+1)
	for i := range next {
		next[i] = start[first+uint32(i)] - start[first]
	}

	sorted := make([]uint32, start[last+1]-start[first])
	for _, row := range rows {
		if r := rank(row); r >= first && r <= last {
			sorted[next[r-first]] = row
			next[r-first]++
		}
	}

	// Sort each rank by the next keys.
	for r := first; r <= last; r++ {
		if start[r] == start[r+1] {
			continue
		}
		same := sorted[start[r]-start[first] : start[r+1]-start[first]]
		page = c.sortInto(page, same, keys[1:], max(from-start[r], 0), min(to-start[r], len(same)))
	}

	return page
}

// ranker returns a function for the ranks of rows, counted from the end for a descending order. Most ranks are those of
// the row's service. If there are more rows than services, a table of the services' ranks saves two reads of distant
// memory for each row.
func (c *columns) ranker(k topology.Order, rows int) func(row uint32) uint32 {
	last := c.ranks(k.By) - 1
	directed := func(r uint32) uint32 {
		if k.Descending {
			return last - r
		}
		return r
	}

	if k.By == topology.ByName {
		table := make([]uint32, len(c.kinds))
		for i := range table {
			table[i] = directed(c.kinds[i].alias)
		}
		return func(row uint32) uint32 { return table[c.kind[row]] }
	}

	if rows < len(c.services) {
		return func(row uint32) uint32 { return directed(c.rank(k.By, row)) }
	}

	table := make([]uint32, len(c.services))
	for i := range table {
		table[i] = directed(c.serviceRank(k.By, uint32(i)))
	}

	return func(row uint32) uint32 { return table[c.service[row]] }
}

// rankAt returns the rank of the row at a position of the sorted rows.
func rankAt(start []int, position int) int {
	i, _ := slices.BinarySearch(start, position+1)
	return i - 1
}

// rank is the position of a row's value among all values of a field.
func (c *columns) rank(by topology.Field, row uint32) uint32 {
	switch by {
	case topology.ByProcess:
		return row
	case topology.ByName:
		return c.aliasOf(row)
	}
	return c.serviceRank(by, c.service[row])
}

// serviceRank is the rank of all rows of a service. Addresses are sorted as numbers, not as texts: 10.0.0.2 comes
// before 10.0.0.10. Hosts without an IPv4 address come first.
func (c *columns) serviceRank(by topology.Field, s uint32) uint32 {
	service := &c.services[s]
	switch by {
	case topology.BySet:
		return c.modules[service.module].set
	case topology.ByModule:
		return c.moduleRank[service.module]
	}
	return c.hosts[service.host].rank
}

// ranks is a number above every rank of a field.
func (c *columns) ranks(by topology.Field) uint32 {
	switch by {
	case topology.BySet:
		return uint32(len(c.sets))
	case topology.ByModule:
		return uint32(len(c.modules))
	case topology.ByName:
		return uint32(len(c.aliases))
	case topology.ByIP:
		return uint32(len(c.hosts))
	}
	return uint32(len(c.ids))
}
