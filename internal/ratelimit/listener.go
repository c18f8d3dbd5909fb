package ratelimit

import (
	"net"
	"net/netip"
	"sync"
)

// Listener limits the open connections of each address and of all addresses together. A connection beyond the limits is
// closed before anything is read from it. Proxies have many callers, so only the limit of all counts for them.
func (g *Guard) Listener(l net.Listener) net.Listener {
	if g.o.Connections <= 0 && g.o.TotalConnections <= 0 {
		return l
	}
	return &listener{Listener: l, g: g, open: map[netip.Prefix]int{}}
}

// listener counts the open connections of each address.
type listener struct {
	net.Listener
	g *Guard

	mu    sync.Mutex
	total int
	open  map[netip.Prefix]int
}

// Accept waits for a connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok {
			return c, nil
		}

		from := network(peer.AddrPort().Addr())
		if l.add(from, l.g.trusts(peer.AddrPort().Addr().Unmap())) {
			return &conn{Conn: c, done: sync.OnceFunc(func() { l.remove(from) })}, nil
		}
		l.g.o.Refused(RuleConnections)
		_ = c.Close() // there is nothing to do about an error
	}
}

func (l *listener) add(from netip.Prefix, proxy bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, all := l.g.o.Connections, l.g.o.TotalConnections
	if all > 0 && l.total >= all || one > 0 && !proxy && l.open[from] >= one {
		return false
	}
	l.total++
	l.open[from]++
	return true
}

func (l *listener) remove(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[from]--; l.open[from] <= 0 {
		delete(l.open, from)
	}
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	done func()
}

// Close closes the connection and ends its count.
func (c *conn) Close() error {
	c.done()
	return c.Conn.Close()
}
