package nats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// firstByte is how long a server on the same machine may take to say its first word.
const firstByte = 10 * time.Second

// dialer opens the connections of a link. Without TLS it connects to loopback addresses only. It closes a connection
// when the link ends, because the library waits for a silent server until its timeout, and before the next one, because
// the library does not close one whose handshake fails.
type dialer struct {
	link  *Link
	atEnd func(f func()) (cancel func() bool)
}

// Dial implements natsgo.CustomDialer. It connects to the next server, whatever address the library has.
func (d dialer) Dial(network, _ string) (net.Conn, error) {
	if last := d.link.socket.Load(); last != nil {
		_ = last.Close() // it is of no use, and mostly closed already
	}
	address, patience := d.link.servers.next()
	nd := net.Dialer{Timeout: patience}

	if d.link.opts.TLS == nil {
		nd.Control = onlyLoopback
	}
	if from := d.link.opts.From; from.IsValid() {
		nd.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
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
	c := &linkConn{Conn: conn, cancel: cancel, until: time.Now().Add(patience)}
	d.link.socket.Store(c)
	if d.link.opts.TLS != nil {
		return c, nil
	}
	if err := c.awaitServer(); err != nil {
		_ = c.Close()
		d.link.failed(err) // the library does not report why its first attempt failed
		return nil, err
	}
	return c, nil
}

// errWantsTLS is why an agent with a join secret cannot connect: the server waits for a TLS handshake, and says nothing
// before.
var errWantsTLS = errors.New("the server does not answer an agent without a certificate: it serves enrolled hosts. Join " +
	"this host: run gozzard token create on the server, then gozzard agent join on this host")

// awaitServer waits for the first byte of the server. A server without TLS sends it at once.
func (c *linkConn) awaitServer() error {
	var first [1]byte
	if err := c.SetReadDeadline(time.Now().Add(firstByte)); err != nil {
		return err
	}
	_, err := io.ReadFull(c.Conn, first[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errWantsTLS
	}
	if err != nil {
		return err
	}
	c.first = first[:]
	return c.SetReadDeadline(time.Time{})
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
	first  []byte    // what awaitServer has read
	until  time.Time // when the handshake must be over; zero: it is
}

// SetDeadline implements net.Conn. The library sets one for the handshake, which is too long if there are other servers.
func (c *linkConn) SetDeadline(t time.Time) error {
	switch {
	case t.IsZero():
		c.until = time.Time{}
	case !c.until.IsZero() && c.until.Before(t):
		t = c.until
	}
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (c *linkConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *linkConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}
