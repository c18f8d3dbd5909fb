package relay

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/enrol"
)

const (
	// chunk is how much of a connection is carried at once. There are two buffers for every host, so it is small.
	chunk = 4 << 10

	// stuckAfter is how long one end may not take what the other one sends. Its connection is then closed: it would hold
	// the room of all streams of the relay.
	stuckAfter = 30 * time.Second
)

// fromOf is the address of the host whose connection a relay carries.
func fromOf(r *http.Request) (netip.AddrPort, error) {
	from, err := netip.ParseAddrPort(r.Header.Get(enrol.RelayFromHeader))
	if err != nil {
		return from, errors.New("the request does not say which host it is for")
	}
	return netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port()), nil
}

// serveAgent carries the connection of an agent. The broker sees it as a connection of this machine, so what it really is
// must be noted before the first byte.
func (d *Door) serveAgent(w http.ResponseWriter, r *http.Request, relay enrol.RelayRecord) {
	from, err := fromOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(r.Context(), "tcp", d.o.Agents())
	if err != nil {
		http.Error(w, "this server does not accept agents now", http.StatusBadGateway)
		return
	}

	at, p := c.LocalAddr().String(), &Passage{Relay: relay, From: from}
	d.mu.Lock()
	d.passages[at] = p
	d.mu.Unlock()
	carry(w, r, c)

	// The address is free again, and another stream may have it already.
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passages[at] == p {
		delete(d.passages, at)
	}
}

// serveCall carries a connection of a host to the API.
func (d *Door) serveCall(w http.ResponseWriter, r *http.Request, relay enrol.RelayRecord) {
	from, err := fromOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !d.beginCall(relay.ID) {
		d.o.Refused("relay_calls")
		http.Error(w, "too many calls come through this relay at once", http.StatusServiceUnavailable)
		return
	}
	defer d.endCall(relay.ID)

	near, far := net.Pipe()
	if !d.calls.offer(&HostConn{Conn: far, Passage: Passage{Relay: relay, From: from}}) {
		_, _ = near.Close(), far.Close() // a pipe cannot fail
		http.Error(w, "this server ends", http.StatusServiceUnavailable)
		return
	}
	carry(w, r, near)
}

func (d *Door) beginCall(relay string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[relay] >= maxCalls {
		return false
	}
	d.open[relay]++
	return true
}

func (d *Door) endCall(relay string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[relay]--; d.open[relay] == 0 {
		delete(d.open, relay)
	}
}

// carry copies between a stream and a connection until one of them ends. It closes the connection.
func carry(w http.ResponseWriter, r *http.Request, c net.Conn) {
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if control.Flush() != nil {
		_ = c.Close() // there is nothing to do about an error
		return
	}

	// The end of this function ends the reads of the body, and so this goroutine.
	go func() {
		_ = copyChunks(c, r.Body, c.SetWriteDeadline)
		_ = c.Close()
	}()
	_ = copyChunks(flushing{w, control}, c, control.SetWriteDeadline)
	_ = c.Close()
}

// copyChunks copies until the source ends, or the destination does not take it in time.
func copyChunks(to io.Writer, from io.Reader, deadline func(time.Time) error) error {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := deadline(time.Now().Add(stuckAfter)); err != nil {
				return err
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			if err := deadline(time.Time{}); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// flushing sends each write at once.
type flushing struct {
	w       io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// HostConn is a connection of a host to the API that came through a relay.
type HostConn struct {
	net.Conn
	Passage Passage
}

// RemoteAddr is the address of the host, as the relay says.
func (c *HostConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.Passage.From) }

// callListener hands connections of hosts to the server of the API.
type callListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newCallListener(addr net.Addr) *callListener {
	return &callListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// offer hands over a connection. It reports false when the listener is closed.
func (l *callListener) offer(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.done:
		return false
	}
}

// Accept implements net.Listener.
func (l *callListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *callListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *callListener) Addr() net.Addr { return l.addr }
