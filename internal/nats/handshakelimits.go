package nats

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// handshakeLimits limits the TLS handshakes of each address.
type handshakeLimits struct {
	mu      sync.Mutex
	addrs   map[string]*rate.Limiter // by origin
	sweep   int                      // idle addresses are removed when there are this many
	through Through
}

func newHandshakeLimits(through Through) *handshakeLimits {
	return &handshakeLimits{addrs: map[string]*rate.Limiter{}, sweep: sweepAt, through: through}
}

// of returns the limiter of an address.
func (h *handshakeLimits) of(remote net.Addr) *rate.Limiter {
	from := h.through.origin(remote.String())
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
