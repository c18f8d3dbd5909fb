package index

import "github.com/gozzard/gozzard/internal/topology"

// matchRows finds for each row the row of the old columns with the same host and alias. For a row without one the
// result is the number of old rows, which is no valid row.
func (c *columns) matchRows(old *columns) []uint32 {
	same := make([]uint32, len(c.ids))
	for row := range same {
		same[row] = uint32(len(old.ids))
	}

	// Find the old positions of hosts.
	hosts := make(map[topology.Host]uint32, len(old.hosts))
	for i := range old.hosts {
		hosts[old.hosts[i].Host] = uint32(i)
	}

	// Compare the aliases host by host.
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

// copyStatuses copies the statuses of the rows that matchRows found.
func (c *columns) copyStatuses(old *columns, same []uint32) {
	for row, was := range same {
		if int(was) < len(old.ids) && copy(c.statusesOf(uint32(row)), old.statusesOf(was)) > 0 {
			c.updateRow(uint32(row))
		}
	}
}
