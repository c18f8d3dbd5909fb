package nats

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// turns are the handshakes of each address.
type turns struct {
	mu     sync.Mutex
	limits map[netip.Addr]*rate.Limiter
	sweep  int // how many addresses there may be before those that are quiet are looked for
}

func newTurns() *turns { return &turns{limits: map[netip.Addr]*rate.Limiter{}, sweep: sweepAt} }

// of finds the limit of an address. Of IPv6 the network counts: everybody there has as many addresses as he likes.
func (t *turns) of(peer net.Addr) *rate.Limiter {
	from := netip.Addr{} // not of TCP: all of them are one

	if ap, err := netip.ParseAddrPort(peer.String()); err == nil {
		from = ap.Addr().Unmap().WithZone("")
		if from.Is6() {
			p, _ := from.Prefix(64) // fails for other lengths only
			from = p.Addr()
		}
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.limits[from]
	if l == nil {
		if len(t.limits) >= t.sweep {
			for a, old := range t.limits {
				if old.Tokens() >= addrBurst {
					delete(t.limits, a)
				}
			}
			t.sweep = max(sweepAt, 2*len(t.limits))
		}
		l = rate.NewLimiter(handshakesPerAddr, addrBurst)
		t.limits[from] = l
	}

	return l
}
