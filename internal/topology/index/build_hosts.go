package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// addHost returns the position of a host, and adds the host if it is new.
func (w *builder) addHost(h topology.Host) uint32 {
	if position, ok := w.hosts[h]; ok {
		return position
	}

	h.Agent = gozzard.AgentID(strings.Clone(string(h.Agent)))
	position := uint32(len(w.c.hosts))
	w.c.hosts, w.hosts[h] = append(w.c.hosts, hostEntry{Host: h}), position
	return position
}

// indexHosts sorts the hosts by address, and makes the lists in which they are searched.
func (w *builder) indexHosts(clouds []topology.Cloud) {
	// Sort the hosts.
	c := w.c
	order := positionsBy(len(c.hosts), func(a, b uint32) int {
		return cmp.Or(c.hosts[a].IP.Compare(c.hosts[b].IP), cmp.Compare(c.hosts[a].Cloud, c.hosts[b].Cloud))
	})

	sorted, moved := make([]hostEntry, len(order)), make([]uint32, len(order))
	for to, from := range order {
		sorted[to], moved[from] = c.hosts[from], uint32(to)
		sorted[to].rank = uint32(to)
		if to > 0 && sorted[to-1].IP == sorted[to].IP {
			sorted[to].rank = sorted[to-1].rank
		}
	}

	// Correct the services, which refer to the hosts.
	c.hosts = sorted
	for i := range c.services {
		c.services[i].host = moved[c.services[i].host]
	}

	c.hostServices = newLists(len(c.hosts), func(yield func(uint32)) {
		for i := range c.services {
			yield(c.services[i].host)
		}
	})

	// Make the lists of hosts with an IPv6 address and with an agent.
	for h := range uint32(len(c.hosts)) {
		if c.hosts[h].IPv6.IsValid() {
			c.hostsByIPv6 = append(c.hostsByIPv6, h)
		}
		if c.hosts[h].Agent != "" {
			c.hostsByAgent = append(c.hostsByAgent, h)
		}
	}

	c.hostsByIPv6, c.hostsByAgent = slices.Clone(c.hostsByIPv6), slices.Clone(c.hostsByAgent)
	slices.SortStableFunc(c.hostsByIPv6, func(a, b uint32) int {
		return compareIPv6(&c.hosts[a].Host, &c.hosts[b].Host)
	})

	slices.SortStableFunc(c.hostsByAgent, func(a, b uint32) int {
		return cmp.Compare(c.hosts[a].Agent, c.hosts[b].Agent)
	})

	w.indexClouds(clouds)
}

func compareIPv6(a, b *topology.Host) int {
	return cmp.Or(a.IPv6.Compare(b.IPv6), cmp.Compare(a.Cloud, b.Cloud))
}

// indexClouds lists the clouds that have hosts, with their names.
func (w *builder) indexClouds(clouds []topology.Cloud) {
	c := w.c
	names := make(map[int]string, len(clouds))
	for _, l := range clouds {
		names[l.ID] = l.Name
	}

	positions := make(map[int]uint32)
	for i := range c.hosts {
		positions[c.hosts[i].Cloud] = 0
	}

	for id := range positions {
		c.clouds = append(c.clouds, topology.Cloud{ID: id, Name: strings.Clone(names[id])})
	}

	slices.SortFunc(c.clouds, func(a, b topology.Cloud) int { return cmp.Compare(a.ID, b.ID) })

	for i, l := range c.clouds {
		positions[l.ID] = uint32(i)
	}

	for i := range c.hosts {
		c.hosts[i].cloud = positions[c.hosts[i].Cloud]
	}
}
