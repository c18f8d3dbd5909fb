package gozzard

import (
	"net/netip"
	"slices"
	"strings"
)

// MetricsAddr is where the agent serves its metrics. ok is false if it serves none, and if the address is not one of the
// host: Prometheus sends its token to every address that it is given, so an agent may name no other host.
func (h *HostInfo) MetricsAddr() (scheme string, at netip.AddrPort, ok bool) {
	scheme, text, _ := strings.Cut(h.Metrics, "://")
	if scheme != "http" && scheme != "https" || len(text) > 64 {
		return "", at, false
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 {
		return "", at, false
	}
	own := func(a HostAddr) bool { return a.IP == at.Addr() }
	return scheme, at, slices.ContainsFunc(h.Addrs, own)
}
