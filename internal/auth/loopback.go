package auth

import (
	"net"
	"net/netip"
	"strings"
)

// Loopback reports whether the host of a URL is this machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// LocalHost reports whether the header Host of a request names this machine by a loopback address or as localhost. A
// page of another site whose name points to this machine (DNS rebinding) sends its own name.
func LocalHost(header string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
	}
	return Loopback(strings.ToLower(host))
}
