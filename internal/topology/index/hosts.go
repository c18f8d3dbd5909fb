package index

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/internal/topology"
)

// hostTest is the conditions on hosts. Each host is tested once, and the names of clouds beforehand.
type hostTest struct {
	asks    bool
	c       *columns
	visible func(h *topology.Host) bool // nil: all are
	clouds  []int                       // ids, sorted; nil: all
	ips     map[netip.Addr]struct{}     // nil: all
	terms   []string                    // each must be part of the address or of the name of the cloud
	inCloud [][]bool                    // whether a term is part of the name of a cloud, by term and cloud
	memo    []memo                      // of each host
}

func newHostTest(c *columns, s *scratch, q *topology.Query) hostTest {
	t := hostTest{
		asks: len(q.Clouds)+len(q.IPs)+len(q.Searches) > 0 || q.Visible != nil,
		c:    c, visible: q.Visible, clouds: sortedIDs(q.Clouds), terms: q.Searches,
	}
	if !t.asks {
		return t
	}

	t.memo = s.newMemos(memoHosts, len(c.hosts))

	if len(q.IPs) > 0 {
		t.ips = make(map[netip.Addr]struct{}, len(q.IPs))
		for _, ip := range q.IPs {
			t.ips[ip] = struct{}{}
		}
	}

	for _, term := range t.terms {
		in := make([]bool, len(c.clouds))
		for i := range c.clouds {
			in[i] = strings.Contains(c.clouds[i].Name, term)
		}
		t.inCloud = append(t.inCloud, in)
	}

	return t
}

// matches tests a host by its position.
func (t *hostTest) matches(host uint32) bool {
	if !t.asks {
		return true
	}
	if t.memo[host] == unknown {
		t.memo[host] = memoOf(t.matchesEntry(&t.c.hosts[host]))
	}
	return t.memo[host] == yes
}

func (t *hostTest) matchesEntry(h *hostEntry) bool {
	// Cloud, address and visibility.
	if !hasID(t.clouds, h.Cloud) {
		return false
	}
	if t.ips != nil {
		if _, ok := t.ips[h.IP]; !ok {
			return false
		}
	}
	if t.visible != nil && !t.visible(&h.Host) {
		return false
	}

	// Search terms.
	if len(t.terms) == 0 {
		return true
	}

	var buf [48]byte
	text := buf[:0]

	if h.IP.IsValid() {
		text = h.IP.AppendTo(text)
	}

	ip := string(text)
	for i, term := range t.terms {
		if !t.inCloud[i][h.cloud] && !strings.Contains(ip, term) {
			return false
		}
	}

	return true
}

// hostsAt returns the hosts with an IPv4 address, one for each cloud that has it.
func (c *columns) hostsAt(ip netip.Addr) span {
	from, _ := slices.BinarySearchFunc(c.hosts, ip, func(h hostEntry, ip netip.Addr) int { return h.IP.Compare(ip) })
	s := span{uint32(from), uint32(from)}
	for int(s.to) < len(c.hosts) && c.hosts[s.to].IP == ip {
		s.to++
	}
	return s
}

// sortedIDs returns the distinct ids of a list, sorted. It is nil when the list is empty, which means all ids.
func sortedIDs(list []int) []int {
	if len(list) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// hasID reports whether an id is in a list of sortedIDs.
func hasID(list []int, id int) bool {
	if list == nil {
		return true
	}
	_, ok := slices.BinarySearch(list, id)
	return ok
}
