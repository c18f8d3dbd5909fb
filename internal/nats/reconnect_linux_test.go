package nats_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/nats"
)

// TestReconnect: the link drops its connection and connects again, as often as it is asked to.
func TestReconnect(t *testing.T) {
	ways(t, func(t *testing.T, _ *nats.Broker, o nats.LinkOptions) {
		o.Agent = agentID(1)
		e := link(t, o)
		for n := 1; n <= 3; n++ {
			eventually(t, "the connection", func() bool { return e.upCount() == n && e.isUp() })
			if up, fault := e.State(); !up || fault != "" {
				t.Errorf("connected, and the state is %v %q", up, fault)
			}
			if err := e.Reconnect(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReconnectWithoutAServer: without a server the link says why, and Reconnect does no harm.
func TestReconnectWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	addr := l.Addr().String()

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	e := link(t, nats.LinkOptions{URL: addr, Agent: agentID(1)})
	eventually(t, "the reason", func() bool {
		up, fault := e.State()
		return !up && strings.Contains(fault, "refused")
	})

	for range 20 {
		if err := e.Reconnect(); err != nil && !errors.Is(err, nats.ErrDown) {
			t.Fatal(err)
		}
	}

	broker(t, addr)
	eventually(t, "the server that came later", e.isUp)
}

// TestReconnectOverADeadNetwork: the network is silently gone, as when a host moves: nothing arrives and nothing fails.
// Reconnect works at once, before the silence is noticed.
func TestReconnectOverADeadNetwork(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	w := newCable(t, b.Addr())
	e := link(t, nats.LinkOptions{URL: w.addr, Agent: agentID(1)})
	eventually(t, "the connection", e.isUp)
	w.freeze()
	if err := e.Reconnect(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new connection", func() bool { return w.made() > 1 && e.upCount() == 2 && e.isUp() })
}

// TestSilentServer: the network is silently gone. The link notices it, because it hears nothing.
func TestSilentServer(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	w := newCable(t, b.Addr())
	e := link(t, nats.LinkOptions{URL: w.addr, Agent: agentID(1), Silence: 100 * time.Millisecond, Patience: 2 * time.Second})
	eventually(t, "the connection", e.isUp)
	w.freeze()
	eventually(t, "a new connection", func() bool { return w.made() > 1 && e.upCount() >= 2 && e.isUp() })
}

// TestSilentServerIsLeft: with another server, the link does not wait for a silent one as long as it would without.
func TestSilentServerIsLeft(t *testing.T) {
	cables := map[string]*cable{}
	var addresses []string
	for range 2 {
		w := newCable(t, broker(t, "127.0.0.1:0").Addr())
		cables[w.addr] = w
		addresses = append(addresses, w.addr)
	}
	e := link(t, nats.LinkOptions{URL: strings.Join(addresses, ","), Agent: agentID(1), Silence: 100 * time.Millisecond, Patience: time.Hour})
	eventually(t, "the connection", e.isUp)
	first := e.Address()
	cables[first].freeze()
	eventually(t, "the other server", func() bool { return e.isUp() && e.Address() != first })
}

// TestNoAnswerOnANewConnection: the server accepts a connection and then is silent, as when it has too much to do. The
// link does not stay down.
func TestNoAnswerOnANewConnection(t *testing.T) {
	b := broker(t, "127.0.0.1:0")
	w := newCable(t, b.Addr())
	w.freezeAfter("PONG")
	e := link(t, nats.LinkOptions{URL: w.addr, Agent: agentID(1), Patience: time.Second})
	eventually(t, "a new connection", func() bool { return w.made() > 1 && e.isUp() })
	if _, fault := e.State(); fault != "" {
		t.Errorf("it is up, and its fault is %q", fault)
	}
}

// TestReconnectGivesUpADial: the network drops packets, and an attempt to connect would wait for long. Reconnect
// cancels it, and the next attempt finds the server.
func TestReconnectGivesUpADial(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}

	closeFD := sync.OnceFunc(func() { _ = syscall.Close(fd) })
	defer closeFD()

	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}

	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}

	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(sa.(*syscall.SockaddrInet4).Port))
	queued, err := net.Dial("tcp", addr) // nothing accepts it, and the queue has room for one
	if err != nil {
		t.Fatal(err)
	}

	defer queued.Close()
	e := link(t, nats.LinkOptions{URL: addr, Agent: agentID(1)})
	eventually(t, "an attempt that is given up", func() bool {
		if err := e.Reconnect(); err != nil && !errors.Is(err, nats.ErrDown) {
			t.Fatal(err)
		}
		_, fault := e.State()
		return strings.Contains(fault, "canceled")
	})

	closeFD()
	_ = queued.Close()
	var b *nats.Broker
	eventually(t, "the port", func() bool {
		b, err = nats.StartBroker(nats.BrokerOptions{Listen: addr, Secret: secret})
		return err == nil
	})

	t.Cleanup(b.Close)
	eventually(t, "the server", e.isUp)
}

// cable forwards connections to a server. freeze silently stops those that exist; later ones work.
type cable struct {
	addr string

	mu     sync.Mutex
	n      int
	frozen int    // connections up to this one carry nothing
	last   string // the first connection carries nothing after this text; "": it works
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	w := &cable{addr: l.Addr().String()}
	var wg sync.WaitGroup
	var open sync.Map
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		wg.Wait()
	})

	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			open.Store(near, nil)
			open.Store(far, nil)
			w.mu.Lock()
			w.n++
			n := w.n
			w.mu.Unlock()
			wg.Go(func() { w.carry(n, far, near) })
			wg.Go(func() { w.carry(n, near, far) })
		}
	})

	return w
}

func (w *cable) carry(n int, to, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		k, err := from.Read(buf)
		w.mu.Lock()
		dead := n <= w.frozen
		w.mu.Unlock()
		if dead { // not even the end of a connection arrives
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buf[:k]); err != nil {
			return
		}
		w.mu.Lock()
		if n == 1 && w.last != "" && bytes.Contains(buf[:k], []byte(w.last)) {
			w.frozen = 1
		}
		w.mu.Unlock()
	}
}

// freezeAfter freezes the first connection when it has carried a text.
func (w *cable) freezeAfter(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = text
}

func (w *cable) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = w.n
}

func (w *cable) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}
