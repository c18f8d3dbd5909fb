package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// runHosts choose the hosts of a new process.
type runHosts struct {
	hosts      []string
	allHosts   bool
	biz        int
	expression string
}

func (h *runHosts) register(f *pflag.FlagSet) {
	f.StringArrayVar(&h.hosts, "host", nil, "`HOST` as cloud:ip, an IP address, a host name or an agent id; may be repeated "+
		"(default: this host, or the only one)")
	f.BoolVar(&h.allHosts, "all-hosts", false, "every host of the fleet")
	f.IntVar(&h.biz, "biz", 0, "`ID` of the business of -e")
	f.StringVarP(&h.expression, "expression", "e", "", "the hosts of processes that this `EXPRESSION` matches, such as "+
		"'front.*.*.nginx.*'")
}

// find finds the hosts, and reports whether this host is the only one.
func (h *runHosts) find(ctx context.Context, c *client.Client) (list []client.Host, local bool, err error) {
	given := 0
	for _, is := range []bool{len(h.hosts) > 0, h.allHosts, h.expression != ""} {
		if is {
			given++
		}
	}

	switch {
	case given > 1:
		return nil, false, usage("give one of --host, --all-hosts and -e")
	case h.expression != "":
		list, err = h.matching(ctx, c)
		return list, false, err
	case len(h.hosts) > 0:
		list, err = parseHostFlags(h.hosts)
		return list, len(list) == 1 && isLocal(list[0].IP), err
	}

	all, err := allHosts(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if h.allHosts {
		for i := range all {
			list = append(list, client.Host{Agent: all[i].Agent})
		}
		return list, len(all) == 1 && isThisHost(&all[0]), nil
	}
	return defaultHost(all)
}

// defaultHost is the only host, or the one among several that is this host. Of several hosts of `gozzard dev`, which
// are all this host, it is the first.
func defaultHost(all []client.HostInfo) ([]client.Host, bool, error) {
	var here []client.HostInfo
	for i := range all {
		if isThisHost(&all[i]) {
			here = append(here, all[i])
		}
	}

	switch {
	case len(all) == 0:
		return nil, false, usage("the server has no host yet: start an agent on this host, see gozzard agent join --help")
	case len(all) == 1:
		return []client.Host{{Agent: all[0].Agent}}, len(here) == 1, nil
	case len(here) == 1:
		return []client.Host{{Agent: here[0].Agent}}, true, nil
	}
	for i := range here {
		if a := here[i].Addrs; len(here) == len(all) && len(a) == 1 && a[0].IP == "127.0.0.1" {
			return []client.Host{{Agent: here[i].Agent}}, true, nil
		}
	}
	return nil, false, usage("the server has %d hosts: choose with --host HOST (may be repeated) or --all-hosts", len(all))
}

// matching finds the hosts of processes that the expression matches.
func (h *runHosts) matching(ctx context.Context, c *client.Client) ([]client.Host, error) {
	flags := scopeFlags{biz: h.biz, expression: h.expression}
	scope, err := flags.scope(ctx, c)
	if err != nil {
		return nil, err
	}

	seen := map[client.Host]bool{}
	var list []client.Host
	for p, err := range c.AllProcesses(ctx, client.ProcessQuery{BusinessSelection: scope}) {
		if err != nil {
			return nil, err
		}
		if host := (client.Host{Agent: p.Host.Agent}); p.Host.Agent != "" && !seen[host] {
			seen[host] = true
			list = append(list, host)
		}
	}
	if len(list) == 0 {
		return nil, &exitError{exitNoMatch, fmt.Errorf("no process matches %s on a host that the server knows", h.expression)}
	}
	return list, nil
}

// allHosts lists every host that the caller may see.
func allHosts(ctx context.Context, c *client.Client) (list []client.HostInfo, err error) {
	for {
		page, err := c.Hosts(ctx, len(list), client.MaxPage)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Hosts...)
		if len(page.Hosts) < client.MaxPage {
			return list, nil
		}
	}
}

// isThisHost reports whether a host is the one that this command runs on: it has an address of this host, and its name.
func isThisHost(h *client.HostInfo) bool {
	if h.Hostname != hostname() {
		return false
	}
	for _, a := range h.Addrs {
		if isLocal(a.IP) {
			return true
		}
	}
	return false
}

// isLocal reports whether an address belongs to this host.
func isLocal(text string) bool {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}

	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.AsSlice()) {
			return true
		}
	}
	return false
}
