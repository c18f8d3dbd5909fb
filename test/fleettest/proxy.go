//go:build linux

package fleettest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a relay on this machine that simulates a pulled cable: it neither forwards nor rejects bytes meanwhile.
type Proxy struct {
	held        atomic.Bool
	l           net.Listener
	network, to string
	wg          sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// NewProxy relays TCP on loopback to an address.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	return newProxy(t, "tcp", "127.0.0.1:0", to)
}

// NewSocketProxy relays a new Unix socket to another one.
func NewSocketProxy(t testing.TB, path, to string) *Proxy {
	t.Helper()
	return newProxy(t, "unix", path, to)
}

func newProxy(t testing.TB, network, listen, to string) *Proxy {
	t.Helper()
	l, err := net.Listen(network, listen)
	if err != nil {
		t.Fatal(err)
	}

	p := &Proxy{l: l, network: network, to: to}
	p.wg.Go(p.accept)

	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		p.wg.Wait()
	})

	return p
}

// Addr is where to connect.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Hold pulls the cable (true) or reconnects it.
func (p *Proxy) Hold(v bool) { p.held.Store(v) }

// Cut resets all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *Proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial(p.network, p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.wg.Go(func() { p.relay(in, out) })
		p.wg.Go(func() { p.relay(out, in) })
	}
}

func (p *Proxy) relay(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for p.held.Load() {
			time.Sleep(10 * time.Millisecond)
			if _, e := from.Read(nil); e != nil && e != io.EOF {
				return
			}
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
