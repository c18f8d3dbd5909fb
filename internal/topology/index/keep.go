package index

import "github.com/gozzard/gozzard/internal/topology"

// matchInstances finds for each row the row of other columns that is the same process on the same host: its status
// goes on. The number of a row without one is past all rows.
func (c *columns) matchInstances(old *columns) []uint32 {
	same := make([]uint32, len(c.ids))
	for row := range same {
		same[row] = uint32(len(old.ids))
	}

	hosts := make(map[topology.Host]uint32, len(old.hosts))
	for i := range old.hosts {
		hosts[old.hosts[i].Host] = uint32(i)
	}

	before := make(map[string]uint32)
	for h := range c.hosts {
		was, ok := hosts[c.hosts[h].Host]
		if !ok {
			continue
		}
		clear(before)
		for row := range old.rowsOn(was) {
			before[old.aliases[old.aliasOf(row)]] = row
		}
		for row := range c.rowsOn(uint32(h)) {
			if r, ok := before[c.aliases[c.aliasOf(row)]]; ok {
				same[row] = r
			}
		}
	}

	return same
}

// keep takes over the statuses of instances that stay.
func (c *columns) keep(old *columns, same []uint32) {
	for row, was := range same {
		if int(was) < len(old.ids) && copy(c.statusesOf(uint32(row)), old.statusesOf(was)) > 0 {
			c.write(uint32(row))
		}
	}
}
