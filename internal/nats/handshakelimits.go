package nats

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// handshakeLimits limits the TLS handshakes of each address.
type handshakeLimits struct {
	mu    sync.Mutex
	addrs map[netip.Addr]*rate.Limiter
	sweep int // idle addresses are removed when there are this many
}

func newHandshakeLimits() *handshakeLimits {
	return &handshakeLimits{addrs: map[netip.Addr]*rate.Limiter{}, sweep: sweepAt}
}

// of returns the limiter of an address. All IPv6 addresses of one /64 network share a limiter, because one machine
// can use any number of them.
func (h *handshakeLimits) of(remote net.Addr) *rate.Limiter {
	from := netip.Addr{} // all connections that are not TCP share this one
	if ap, err := netip.ParseAddrPort(remote.String()); err == nil {
		from = network(ap.Addr())
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	l := h.addrs[from]
	if l == nil {
		if len(h.addrs) >= h.sweep {
			h.removeIdle()
			h.sweep = max(sweepAt, 2*len(h.addrs))
		}
		l = rate.NewLimiter(handshakesPerAddr, addrBurst)
		h.addrs[from] = l
	}
	return l
}

// network is the address itself for IPv4, and the first one of its /64 network for IPv6.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // fails only for other lengths
		a = p.Addr()
	}
	return a
}

// networkOf is the network of an address as text. All texts that are no address are one network.
func networkOf(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return ""
	}
	return network(a).String()
}

// removeIdle forgets addresses that have their full burst again. mu is held.
func (h *handshakeLimits) removeIdle() {
	for addr, l := range h.addrs {
		if l.Tokens() >= addrBurst {
			delete(h.addrs, addr)
		}
	}
}
