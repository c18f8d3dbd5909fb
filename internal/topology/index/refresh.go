package index

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

// Look tells what the fleet knows now of processes on one host; those that it does not know it leaves in out as
// they are, zero. It must not keep the slices, nor ask the index.
type Look func(h topology.Host, keys []gozzard.Key, out []topology.Status)

// hostsAtOnce bounds how long a refresh keeps other refreshes of the same business waiting.
const hostsAtOnce = 256

// Refresh brings up to date the statuses of all processes on hosts that one of these agents or addresses names.
func (x *Index) Refresh(agents []gozzard.AgentID, addrs []gozzard.HostAddr, look Look) {
	if len(agents)+len(addrs) == 0 {
		return
	}
	n := newHostNames(agents, addrs)
	g := x.all.Load()
	for biz, c := range g.now {
		x.refresh(biz, c, look, n.in)
	}
	for biz, c := range g.next {
		x.refresh(biz, c, look, n.in)
	}
}

// RefreshBusiness brings up to date the statuses of all processes of a business.
func (x *Index) RefreshBusiness(biz int, look Look) {
	x.refresh(biz, x.business(biz), look, func(c *columns) []uint32 { return places(len(c.hosts)) })
}

// refresh begins again when other columns took the place of the business's meanwhile.
func (x *Index) refresh(biz int, c *columns, look Look, choose func(*columns) []uint32) {
	for c != nil && !c.refresh(choose(c), look) {
		c = x.business(biz)
	}
}

// refresh reports false when the columns are out of use.
func (c *columns) refresh(hosts []uint32, look Look) bool {
	var u update
	for some := range slices.Chunk(hosts, hostsAtOnce) {
		if !c.refreshSome(some, look, &u) {
			return false
		}
	}
	return true
}

func (c *columns) refreshSome(hosts []uint32, look Look, u *update) bool {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	u.rows, u.places, u.values = u.rows[:0], u.places[:0], u.values[:0]
	for _, h := range hosts {
		u.host(c, h, look)
	}

	if len(u.rows) == 0 {
		return !c.gone.Load()
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.gone.Load() {
		return false
	}

	for i, p := range u.places {
		c.status[p] = u.values[i]
	}

	for _, row := range u.rows {
		c.write(row)
	}

	return true
}

// update is what a refresh found changed, and its buffers.
type update struct {
	rows   []uint32
	places []uint32 // in status
	values []status

	onHost []uint32
	text   []byte
	keys   []gozzard.Key
	out    []topology.Status
}

// host asks for the instances of one host.
func (u *update) host(c *columns, h uint32, look Look) {
	u.onHost = slices.AppendSeq(u.onHost[:0], c.rowsOn(h))
	u.name(c)
	u.out = slices.Grow(u.out[:0], len(u.keys))[:len(u.keys)]
	clear(u.out)
	look(c.hosts[h].Host, u.keys, u.out)
	next := 0
	for _, row := range u.onHost {
		changed := false
		for p := c.first[row]; p < c.first[row+1]; p++ {
			if s := packStatus(u.out[next]); s != c.status[p] { // nobody writes while this one is refreshing
				u.places, u.values, changed = append(u.places, p), append(u.values, s), true
			}
			next++
		}
		if changed {
			u.rows = append(u.rows, row)
		}
	}
}

// name makes the keys of a host's instances, all out of one string.
func (u *update) name(c *columns) {
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

// rowsOn are the rows of a host.
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

// hostNames are names of hosts.
type hostNames struct {
	agents  []gozzard.AgentID
	addrs   []gozzard.HostAddr
	isAgent map[gozzard.AgentID]struct{}
	isAddr  map[gozzard.HostAddr]struct{}
}

func newHostNames(agents []gozzard.AgentID, addrs []gozzard.HostAddr) *hostNames {
	n := &hostNames{agents: agents, addrs: addrs, isAgent: make(map[gozzard.AgentID]struct{}, len(agents)),
		isAddr: make(map[gozzard.HostAddr]struct{}, len(addrs))}
	for _, a := range agents {
		n.isAgent[a] = struct{}{}
	}
	for _, a := range addrs {
		n.isAddr[a] = struct{}{}
	}
	return n
}

// in finds the hosts of a business that are named, by whichever is fewer: with many businesses, looking for each
// name in each of them would cost more than going through all hosts.
func (n *hostNames) in(c *columns) []uint32 {
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

func (n *hostNames) has(h *topology.Host) bool {
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
	return run(c.hostsByAgent, func(h uint32) int { return cmp.Compare(c.hosts[h].Agent, a) })
}

func (c *columns) withAddr(a gozzard.HostAddr) []uint32 {
	if !a.IP.IsValid() {
		return nil
	}
	found := run(c.hostsByIPv6, func(h uint32) int {
		return compareIPv6(&c.hosts[h].Host,
			&topology.Host{Cloud: a.Cloud, IPv6: a.IP})
	})
	for h := c.hostsAt(a.IP); h.from < h.to; h.from++ {
		if c.hosts[h.from].Cloud == a.Cloud {
			found = append(slices.Clip(found), h.from)
		}
	}
	return found
}

// run is the part of sorted places for which compare is 0.
func run(places []uint32, compare func(place uint32) int) []uint32 {
	from, _ := slices.BinarySearchFunc(places, 0, func(p uint32, _ int) int { return compare(p) })
	to := from
	for to < len(places) && compare(places[to]) == 0 {
		to++
	}
	return places[from:to]
}
