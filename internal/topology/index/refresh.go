package index

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// Look writes the current statuses of processes on one host to out, in the order of keys. It leaves the status of a
// process that the fleet does not know as it is, which is zero. It must not keep the slices, and must not call the
// index.
type Look func(h topology.Host, keys []gozzard.Key, out []topology.Status)

// hostsPerStep limits how long a refresh blocks other refreshes of the same business.
const hostsPerStep = 256

// Refresh updates the statuses of all processes on the hosts with one of these agents or addresses, in all businesses.
func (x *Index) Refresh(agents []gozzard.AgentID, addrs []gozzard.HostAddr, look Look) {
	if len(agents)+len(addrs) == 0 {
		return
	}

	refs := newHostRefs(agents, addrs)
	g := x.all.Load()
	for biz, c := range g.current {
		x.refresh(biz, c, look, refs.hostsIn)
	}
	for biz, c := range g.loading {
		x.refresh(biz, c, look, refs.hostsIn)
	}
}

// RefreshBusiness updates the statuses of all processes of a business.
func (x *Index) RefreshBusiness(biz int, look Look) {
	x.refresh(biz, x.business(biz), look, func(c *columns) []uint32 { return positions(len(c.hosts)) })
}

// refresh updates the chosen hosts of a business. It starts again when the columns of the business were replaced
// meanwhile.
func (x *Index) refresh(biz int, c *columns, look Look, choose func(*columns) []uint32) {
	for c != nil && !c.refresh(choose(c), look) {
		c = x.business(biz)
	}
}

// refresh updates some hosts. It reports false when the columns were replaced.
func (c *columns) refresh(hosts []uint32, look Look) bool {
	var u update
	for some := range slices.Chunk(hosts, hostsPerStep) {
		if !c.refreshSome(some, look, &u) {
			return false
		}
	}
	return true
}

func (c *columns) refreshSome(hosts []uint32, look Look, u *update) bool {
	c.refreshMu.Lock()
	defer c.refreshMu.Unlock()

	// Ask the fleet, without blocking queries.
	u.rows, u.positions, u.values = u.rows[:0], u.positions[:0], u.values[:0]
	for _, h := range hosts {
		u.lookAt(c, h, look)
	}

	if len(u.rows) == 0 {
		return !c.replaced.Load()
	}

	// Write what has changed.
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.replaced.Load() {
		return false
	}

	for i, p := range u.positions {
		c.status[p] = u.values[i]
	}

	for _, row := range u.rows {
		c.updateRow(row)
	}

	return true
}

// update is what a refresh found changed, and its buffers.
type update struct {
	rows      []uint32
	positions []uint32 // in status
	values    []status // of each in positions

	// Buffers for one host.
	onHost []uint32
	text   []byte
	keys   []gozzard.Key
	out    []topology.Status
}

// lookAt asks for the instances on one host and collects those that have changed.
func (u *update) lookAt(c *columns, h uint32, look Look) {
	u.onHost = slices.AppendSeq(u.onHost[:0], c.rowsOn(h))
	u.makeKeys(c)
	u.out = slices.Grow(u.out[:0], len(u.keys))[:len(u.keys)]
	clear(u.out)
	look(c.hosts[h].Host, u.keys, u.out)

	next := 0
	for _, row := range u.onHost {
		changed := false
		for p := c.first[row]; p < c.first[row+1]; p++ {
			// Reading status needs no lock: only refreshes write it, and this one holds refreshMu.
			if s := packStatus(u.out[next]); s != c.status[p] {
				u.positions, u.values, changed = append(u.positions, p), append(u.values, s), true
			}
			next++
		}
		if changed {
			u.rows = append(u.rows, row)
		}
	}
}

// makeKeys makes the keys of a host's instances. All names are parts of one string, so that there is one allocation.
func (u *update) makeKeys(c *columns) {
	u.text, u.keys = u.text[:0], u.keys[:0]
	for _, row := range u.onHost {
		for local := range c.first[row+1] - c.first[row] {
			u.text = append(append(u.text, c.aliases[c.aliasOf(row)]...), '_')
			u.text = strconv.AppendUint(u.text, uint64(local)+1, 10)
		}
	}

	text := string(u.text)
	for _, row := range u.onHost {
		alias := len(c.aliases[c.aliasOf(row)])
		for local := range c.first[row+1] - c.first[row] {
			n := alias + 1 + digits(local+1)
			u.keys = append(u.keys, gozzard.Key{Namespace: c.namespace, Name: text[:n]})
			text = text[n:]
		}
	}
}

func digits(n uint32) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// rowsOn iterates over the rows of a host.
func (c *columns) rowsOn(host uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, s := range c.hostServices.of(host) {
			for _, row := range c.serviceRows.of(s) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// hostRefs names hosts, by agent or address.
type hostRefs struct {
	agents  []gozzard.AgentID
	addrs   []gozzard.HostAddr
	isAgent map[gozzard.AgentID]struct{}
	isAddr  map[gozzard.HostAddr]struct{}
}

func newHostRefs(agents []gozzard.AgentID, addrs []gozzard.HostAddr) *hostRefs {
	n := &hostRefs{
		agents: agents, addrs: addrs,
		isAgent: make(map[gozzard.AgentID]struct{}, len(agents)),
		isAddr:  make(map[gozzard.HostAddr]struct{}, len(addrs)),
	}
	for _, a := range agents {
		n.isAgent[a] = struct{}{}
	}
	for _, a := range addrs {
		n.isAddr[a] = struct{}{}
	}
	return n
}

// hostsIn finds the hosts of a business that are named. For a business with few hosts it tests each of them;
// otherwise it searches for each name. With many small businesses, searching for every name in each of them would
// take longer.
func (n *hostRefs) hostsIn(c *columns) []uint32 {
	var found []uint32

	if len(c.hosts) <= 4*(len(n.agents)+len(n.addrs)) {
		for h := range c.hosts {
			if n.has(&c.hosts[h].Host) {
				found = append(found, uint32(h))
			}
		}
		return found
	}

	for _, a := range n.agents {
		found = append(found, c.withAgent(a)...)
	}

	for _, a := range n.addrs {
		found = append(found, c.withAddr(a)...)
	}

	slices.Sort(found)
	return slices.Compact(found)
}

func (n *hostRefs) has(h *topology.Host) bool {
	if _, ok := n.isAgent[h.Agent]; ok && h.Agent != "" {
		return true
	}
	if _, ok := n.isAddr[gozzard.HostAddr{Cloud: h.Cloud, IP: h.IP}]; ok && h.IP.IsValid() {
		return true
	}
	_, ok := n.isAddr[gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6}]
	return ok && h.IPv6.IsValid()
}

func (c *columns) withAgent(a gozzard.AgentID) []uint32 {
	return equalRange(c.hostsByAgent, func(h uint32) int { return cmp.Compare(c.hosts[h].Agent, a) })
}

func (c *columns) withAddr(a gozzard.HostAddr) []uint32 {
	if !a.IP.IsValid() {
		return nil
	}
	found := equalRange(c.hostsByIPv6, func(h uint32) int {
		return compareIPv6(&c.hosts[h].Host, &topology.Host{Cloud: a.Cloud, IPv6: a.IP})
	})
	for h := c.hostsAt(a.IP); h.from < h.to; h.from++ {
		if c.hosts[h.from].Cloud == a.Cloud {
			found = append(slices.Clip(found), h.from)
		}
	}
	return found
}

// equalRange returns the part of sorted positions for which compare is 0.
func equalRange(sorted []uint32, compare func(position uint32) int) []uint32 {
	from, _ := slices.BinarySearchFunc(sorted, 0, func(p uint32, _ int) int { return compare(p) })
	to := from
	for to < len(sorted) && compare(sorted[to]) == 0 {
		to++
	}
	return sorted[from:to]
}
