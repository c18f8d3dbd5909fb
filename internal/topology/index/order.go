package index

import (
	"cmp"
	"slices"

	"github.com/gozzard/gozzard/internal/topology"
)

// fewRows is how many rows are sorted by comparing them; the places of more are found by counting.
const fewRows = 512

// sortedPage appends the rows at places from to to-1 of a set, once it is sorted. Only what the page needs is
// sorted: each key counts how many rows have which rank, and only ranks that reach into the page go on to the next
// key.
func (c *columns) sortedPage(page []uint32, rows bits, total int, keys []topology.Order, from, to int) []uint32 {
	return c.sortInto(page, rows.take(make([]uint32, 0, total), 0, total), keys, from, to)
}

// sortInto does it for rows that are in order of their ids.
func (c *columns) sortInto(page, rows []uint32, keys []topology.Order, from, to int) []uint32 {
	switch {
	case len(keys) == 0 || keys[0] == topology.Order{By: topology.ByProcess}:
		return append(page, rows[from:to]...)
	case keys[0].By == topology.ByProcess:
		for place := from; place < to; place++ {
			page = append(page, rows[len(rows)-1-place])
		}
		return page
	case len(rows) <= fewRows:
		c.sortFew(rows, keys)
		return append(page, rows[from:to]...)
	}
	return c.sortByCount(page, rows, keys, from, to)
}

func (c *columns) sortFew(rows []uint32, keys []topology.Order) {
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

func (c *columns) sortByCount(page, rows []uint32, keys []topology.Order, from, to int) []uint32 {
	ranks := c.ranks(keys[0].By)
	rank := c.ranker(keys[0], len(rows))
	start := make([]int, ranks+1) // of each rank among all rows
	for _, row := range rows {
		start[rank(row)+1]++
	}

	for r := range ranks {
		start[r+1] += start[r]
	}

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

	for r := first; r <= last; r++ {
		if start[r] == start[r+1] {
			continue
		}
		same := sorted[start[r]-start[first] : start[r+1]-start[first]]
		page = c.sortInto(page, same, keys[1:], max(from-start[r], 0), min(to-start[r], len(same)))
	}

	return page
}

// ranker tells the rank of many rows, counted from the end for a descending order. Most ranks are those of a row's
// service: where there are more rows than services, looking them up beforehand saves two steps for each row, each
// into memory far away.
func (c *columns) ranker(k topology.Order, rows int) func(row uint32) uint32 {
	last := c.ranks(k.By) - 1
	turn := func(r uint32) uint32 {
		if k.Descending {
			return last - r
		}
		return r
	}

	if k.By == topology.ByName {
		table := make([]uint32, len(c.kinds))
		for i := range table {
			table[i] = turn(c.kinds[i].alias)
		}
		return func(row uint32) uint32 { return table[c.kind[row]] }
	}

	if rows < len(c.services) {
		return func(row uint32) uint32 { return turn(c.rank(k.By, row)) }
	}

	table := make([]uint32, len(c.services))
	for i := range table {
		table[i] = turn(c.serviceRank(k.By, uint32(i)))
	}

	return func(row uint32) uint32 { return table[c.service[row]] }
}

// rankAt finds the rank in which a place is.
func rankAt(start []int, place int) int {
	i, _ := slices.BinarySearch(start, place+1)
	return i - 1
}

// rank is the place of a row's value among all values of a field.
func (c *columns) rank(by topology.Field, row uint32) uint32 {
	switch by {
	case topology.ByProcess:
		return row
	case topology.ByName:
		return c.aliasOf(row)
	}
	return c.serviceRank(by, c.service[row])
}

// serviceRank is the rank that all rows of a service have. Addresses are in order of their numbers, as people count
// hosts, and not of their text; hosts without an IPv4 address come first.
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

// ranks is above every rank of a field.
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
