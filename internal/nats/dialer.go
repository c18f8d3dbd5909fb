package nats

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// dialer connects to loopback addresses only unless TLS goes over it, and closes what it opened when its link ends:
// the library waits for a silent server as long as its time-out says.
type dialer struct {
	link  *Link
	atEnd func(f func()) (cancel func() bool)
}

// Dial makes it a natsgo.CustomDialer.
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

	cancel := d.atEnd(func() { _ = conn.Close() }) // its reader learns of it
	c := &linkConn{Conn: conn, cancel: cancel}
	d.link.socket.Store(c)
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
