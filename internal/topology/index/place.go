package index

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// Place finds the set and the module of an instance, by the host as the fleet knows it and the name of the process. An
// instance that the business names by agent is found before one that it names by address.
func (x *Index) Place(biz int, host gozzard.HostRef, name string) (set, module string, ok bool) {
	c := x.business(biz)
	cut := strings.LastIndexByte(name, '_')
	if c == nil || cut < 0 {
		return "", "", false
	}
	local, err := strconv.ParseUint(name[cut+1:], 10, 32)
	if err != nil || local == 0 || name[cut+1] == '0' || name[cut+1] == '+' {
		return "", "", false
	}
	alias, known := slices.BinarySearch(c.aliases, name[:cut])
	if !known {
		return "", "", false
	}

	if host.Agent != "" {
		if row, found := c.rowAt(c.withAgent(host.Agent), uint32(alias), uint32(local)); found {
			return c.namesOf(row)
		}
	}
	for _, a := range host.Addrs {
		if row, found := c.rowAt(c.withAddr(a), uint32(alias), uint32(local)); found {
			return c.namesOf(row)
		}
	}
	return "", "", false
}

// rowAt finds the row with an alias and at least so many instances on one of some hosts.
func (c *columns) rowAt(hosts []uint32, alias, local uint32) (uint32, bool) {
	for _, h := range hosts {
		for row := range c.rowsOn(h) {
			if c.aliasOf(row) == alias && c.first[row+1]-c.first[row] >= local {
				return row, true
			}
		}
	}
	return 0, false
}

// namesOf are the names of a row's set and module.
func (c *columns) namesOf(row uint32) (set, module string, ok bool) {
	m := &c.modules[c.services[c.service[row]].module]
	return c.sets[m.set].name, c.moduleNames[m.name], true
}
