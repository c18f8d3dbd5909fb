package nats

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// dialer connects to loopback addresses only unless TLS goes over it, and closes what it opened when its link ends: the library waits for a silent
// server as long as its time-out says.
type dialer struct {
	anywhere bool
	made     func(*linkConn) // is told of every connection
	atEnd    func(f func()) (cancel func() bool)
}

// Dial makes it a natsgo.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: dialTimeout}
	if !d.anywhere {
		nd.Control = onlyLoopback
	}
	conn, err := nd.Dial(network, address)
	if err != nil {
		return nil, err
	}
	cancel := d.atEnd(func() { _ = conn.Close() }) // its reader learns of it
	c := &linkConn{Conn: conn, cancel: cancel}
	d.made(c)
	return c, nil
}

// onlyLoopback sees the address that is really connected to, after any resolution.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !ap.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", address)
	}
	return nil
}

type linkConn struct {
	net.Conn
	cancel func() bool
}

func (c *linkConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}
