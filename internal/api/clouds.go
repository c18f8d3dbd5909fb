package api

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// cloudFinder finds the cloud of an address that a request gives without one, and the agent of a host that it gives by
// its name. It reads the hosts that the caller may see once, when the first one is looked up.
type cloudFinder struct {
	plane    Plane
	caller   gozzard.Caller
	anyCloud bool // the request means an address without a cloud in every cloud
	clouds   map[netip.Addr][]int
	names    map[string][]gozzard.HostInfo
}

// of returns the only cloud that has the address. It returns 0 for an unknown address, which is then answered like
// any unknown host.
func (c *cloudFinder) of(ip netip.Addr) (int, error) {
	if c.anyCloud {
		return 0, nil
	}

	c.read()
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

// read reads the hosts, once.
func (c *cloudFinder) read() {
	if c.clouds != nil {
		return
	}

	c.clouds, c.names = make(map[netip.Addr][]int), make(map[string][]gozzard.HostInfo)
	for _, h := range c.plane.Hosts(c.caller) {
		for _, a := range h.Info.Addrs {
			if !slices.Contains(c.clouds[a.IP], a.Cloud) {
				c.clouds[a.IP] = append(c.clouds[a.IP], a.Cloud)
			}
		}
		if name := strings.ToLower(h.Info.Hostname); name != "" {
			c.names[name] = append(c.names[name], h.Info)
		}
	}
}

// agent is the agent that a text names: by its id, or as the only host with this name. An id comes first, and what
// looks like the id that an agent makes is never a name: a host gives itself its name, and must not get what was meant
// for another one.
func (c *cloudFinder) agent(text string) (gozzard.AgentID, error) {
	id := gozzard.AgentID(text)
	fault := id.Validate()
	if fault == nil {
		if _, known := c.plane.Resolve(c.caller, gozzard.Target{Agent: id}); known || madeID.MatchString(text) {
			return id, nil
		}
	}

	c.read()
	named := c.names[strings.ToLower(text)]
	switch {
	case len(named) == 1:
		return named[0].Agent, nil
	case len(named) > 1:
		const most = 5
		var list []string
		for _, h := range named[:min(len(named), most)] {
			list = append(list, hostForms(&h))
		}
		return "", fmt.Errorf("%d hosts have the name %s: give an address or an agent id: %s", len(named), clip(text),
			strings.Join(list, ", "))
	case fault == nil:
		return id, nil
	}
	return "", fmt.Errorf("%q is not a host of the fleet: give cloud:ip, an IP address, a host name or an agent id", clip(text))
}

// madeID is the form of the ids that agents make.
var madeID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// hostForms names a host by its address, if it has one, and its agent id.
func hostForms(h *gozzard.HostInfo) string {
	if len(h.Addrs) == 0 {
		return string(h.Agent)
	}
	return h.Addrs[0].String() + " (" + string(h.Agent) + ")"
}

// parseHost reads a host: "cloud:ip", an address, a host name, or an agent id.
func parseHost(s string, clouds *cloudFinder) (gozzard.Target, error) {
	if ip, err := gozzard.ParseIP(s); err == nil {
		cloud, err := clouds.of(ip)
		return gozzard.Target{Addr: gozzard.HostAddr{Cloud: cloud, IP: ip}}, err
	}
	if addr, err := gozzard.ParseHostAddr(s); err == nil {
		return gozzard.Target{Addr: addr}, nil
	}
	agent, err := clouds.agent(s)
	return gozzard.Target{Agent: agent}, err
}
