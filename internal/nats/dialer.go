package nats

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// dialer opens the connections of a link. Without TLS it connects to loopback addresses only. It closes a connection
// when the link ends, because the library waits for a silent server until its timeout.
type dialer struct {
	link  *Link
	atEnd func(f func()) (cancel func() bool)
}

// Dial implements natsgo.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: dialTimeout}

	if d.link.opts.TLS == nil {
		nd.Control = onlyLoopback
	}

	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	d.link.dialling.Store(&giveUp)
	conn, err := nd.DialContext(ctx, network, address)
	d.link.dialling.Store(nil)
	if err != nil {
		return nil, err
	}

	cancel := d.atEnd(func() { _ = conn.Close() }) // the library's reader gets an error
	c := &linkConn{Conn: conn, cancel: cancel}
	d.link.socket.Store(c)
	return c, nil
}

// onlyLoopback rejects other addresses than those of loopback. It gets the address after name resolution.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !ap.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", address)
	}
	return nil
}

// linkConn is a connection of a link that is closed when the link ends.
type linkConn struct {
	net.Conn
	cancel func() bool
}

func (c *linkConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}
