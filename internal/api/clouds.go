package api

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// cloudFinder finds the cloud of an address that a request gives without one. It reads the hosts that the caller may
// see once, when the first address is looked up.
type cloudFinder struct {
	plane  Plane
	caller gozzard.Caller
	clouds map[netip.Addr][]int
}

// of returns the only cloud that has the address. It returns 0 for an unknown address, which is then answered like
// any unknown host. A nil finder returns 0: its caller means every cloud.
func (c *cloudFinder) of(ip netip.Addr) (int, error) {
	if c == nil {
		return 0, nil
	}

	if c.clouds == nil {
		c.clouds = make(map[netip.Addr][]int)
		for _, h := range c.plane.Hosts(c.caller) {
			for _, a := range h.Info.Addrs {
				if !slices.Contains(c.clouds[a.IP], a.Cloud) {
					c.clouds[a.IP] = append(c.clouds[a.IP], a.Cloud)
				}
			}
		}
	}

	switch clouds := c.clouds[ip]; len(clouds) {
	case 0:
		return 0, nil
	case 1:
		return clouds[0], nil
	default:
		slices.Sort(clouds)
		list := make([]string, len(clouds))
		for i, n := range clouds {
			list[i] = strconv.Itoa(n)
		}
		return 0, fmt.Errorf("%s is in the clouds %s: name one of them, such as %d:%s", ip, strings.Join(list, ", "),
			clouds[0], ip)
	}
}

// parseHost reads a host: "cloud:ip", an address, or an agent id.
func parseHost(s string, clouds *cloudFinder) (gozzard.Target, error) {
	if ip, err := gozzard.ParseIP(s); err == nil {
		cloud, err := clouds.of(ip)
		return gozzard.Target{Addr: gozzard.HostAddr{Cloud: cloud, IP: ip}}, err
	}
	if addr, err := gozzard.ParseHostAddr(s); err == nil {
		return gozzard.Target{Addr: addr}, nil
	}
	if id := gozzard.AgentID(s); id.Validate() == nil {
		return gozzard.Target{Agent: id}, nil
	}
	return gozzard.Target{}, fmt.Errorf("%q is not a host: give cloud:ip, an IP address or an agent id", clip(s))
}
