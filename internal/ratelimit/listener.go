package ratelimit

import (
	"net"
	"net/netip"
	"sync"
)

// Listener lets each address have so many connections at a time. One more is closed before a byte of it is read.
func (g *Guard) Listener(l net.Listener) net.Listener {
	if g.o.Connections <= 0 {
		return l
	}
	return &listener{Listener: l, most: g.o.Connections, refused: g.o.Refused, open: map[netip.Prefix]int{}}
}

type listener struct {
	net.Listener
	most    int
	refused func(rule string)

	mu   sync.Mutex
	open map[netip.Prefix]int
}

// Accept waits for a connection that may be served.
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
		if l.enter(from) {
			return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		l.refused(RuleConnections)
		_ = c.Close() // nobody is there to be told
	}
}

func (l *listener) enter(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.most {
		return false
	}
	l.open[from]++
	return true
}

func (l *listener) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] <= 0 {
		delete(l.open, from)
	}
}

// conn is counted until it is closed.
type conn struct {
	net.Conn
	leave func()
}

// Close makes room for another one.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}
