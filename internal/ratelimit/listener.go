package ratelimit

import (
	"net"
	"net/netip"
	"sync"
)

// Listener limits the open connections of each address. A connection beyond the limit is closed before anything is read
// from it.
func (g *Guard) Listener(l net.Listener) net.Listener {
	if g.o.Connections <= 0 {
		return l
	}
	return &listener{Listener: l, max: g.o.Connections, refused: g.o.Refused, open: map[netip.Prefix]int{}}
}

// listener counts the open connections of each address.
type listener struct {
	net.Listener
	max     int
	refused func(rule string)

	mu   sync.Mutex
	open map[netip.Prefix]int
}

// Accept waits for a connection within the limit.
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
		if l.add(from) {
			return &conn{Conn: c, done: sync.OnceFunc(func() { l.remove(from) })}, nil
		}
		l.refused(RuleConnections)
		_ = c.Close() // there is nothing to do about an error
	}
}

func (l *listener) add(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.max {
		return false
	}
	l.open[from]++
	return true
}

func (l *listener) remove(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
