package ratelimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// address is the network of the caller. All IPv6 addresses of one /64 network count as one, because one machine can use
// any number of them.
func (g *Guard) address(r *http.Request) netip.Prefix {
	from, ok := g.caller(r)
	if !ok {
		return netip.Prefix{} // not TCP: all callers of such a listener count as one
	}
	return network(from)
}

// source is the address of the caller for the audit; "" when the connection is not TCP.
func (g *Guard) source(r *http.Request) string {
	if from, ok := g.caller(r); ok {
		return from.WithZone("").String()
	}
	return ""
}

// caller is the address that a request comes from; ok is false when the connection is not TCP.
func (g *Guard) caller(r *http.Request) (from netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	return g.forwarded(peer.Addr().Unmap(), r.Header.Values("X-Forwarded-For")), true
}

// forwarded is the right-most address of X-Forwarded-For that is no proxy of ours. Each proxy adds the address that it
// was asked from, so a caller can have written everything to the left of that address. The header of any other peer
// does not count.
func (g *Guard) forwarded(peer netip.Addr, lines []string) netip.Addr {
	list := strings.Split(strings.Join(lines, ","), ",")
	for i := len(list) - 1; i >= 0 && g.trusts(peer); i-- {
		next, ok := parseForwarded(strings.TrimSpace(list[i]))
		if !ok {
			return peer
		}
		peer = next
	}
	return peer
}

// parseForwarded reads one address of the header. Some proxies add the port.
func parseForwarded(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap(), true
	}
	ap, err := netip.ParseAddrPort(s)
	return ap.Addr().Unmap(), err == nil
}

// trusts reports whether an address is a proxy of ours.
func (g *Guard) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(g.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// Proxied reports whether a request was sent by a proxy of ours.
func (g *Guard) Proxied(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && g.trusts(peer.Addr().Unmap())
}
