package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

const (
	// A broker that is frozen is noticed after this time, or sooner if there is something to send.
	externalPing     = 5 * time.Second
	externalPingsOut = 2
	externalDial     = 5 * time.Second
	externalPause    = time.Second // between two rounds of attempts, and as much again at random

	// What waits to be sent. It waits only while a broker takes nothing; peers notice what is dropped.
	externalWaiting = 4096
	externalBytes   = 64 << 20

	// sealRoom is what a seal adds to a message at most.
	sealRoom = 64
)

// Sealer closes what servers tell each other to everybody else.
type Sealer interface {
	// Seal seals a message to a server, or to all.
	Seal(to string, text []byte) []byte
	// Open opens a message. It may return what to send back to its sender, as it is: the message is then lost.
	Open(to, from string, sealed []byte) (text, reply []byte, err error)
}

// ExternalOptions say how servers of an installation reach each other through a NATS cluster that is not theirs.
type ExternalOptions struct {
	URLs         []string // nats://HOST:PORT on loopback, tls://HOST:PORT elsewhere
	Server       string   // id of this server
	Installation string   // id; it is in all subjects, so that installations can share an account

	CA        string                         // file with the authorities of the brokers; "": those of the system
	Cert, Key string                         // files with the certificate of this server at the brokers; "": none
	Creds     string                         // file with a JWT and its seed; "": none
	User      func() (name, password string) // called for each connection; nil: none

	Seal Sealer
	// Peer is called for each message of another server: in order and one at a time for one peer.
	Peer func(from string, payload []byte)

	Log *slog.Logger
}

// External carries what servers tell each other through a NATS cluster that others may run and use. The cluster carries
// nothing else: agents connect to the brokers of the servers.
type External struct {
	o       ExternalOptions
	options natsgo.Options
	prefix  string // of all subjects

	life context.Context // ends with Close
	end  context.CancelFunc
	lost chan struct{} // capacity 1: there is no connection, and the library makes none

	conn    atomic.Pointer[natsgo.Conn] // nil: there was none yet
	closed  sync.WaitGroup              // connections that are not closed
	in      chan *natsgo.Msg
	out     chan peerMessage
	waiting atomic.Int64 // bytes in out
	peers   *queues

	failed, denied, refused, dropped atomic.Uint64
	again                            atomic.Bool // a new connection is planned
}

// peerMessage is a message to another server, or to all.
type peerMessage struct {
	to     string
	data   []byte
	sealed bool // it is sent as it is
}

// NewExternal checks the options. Run connects.
func NewExternal(o ExternalOptions) (*External, error) {
	if err := validateServer(o.Server); err != nil {
		return nil, err
	}
	if o.Installation == "" || strings.ContainsAny(o.Installation, ".*> ") {
		return nil, fmt.Errorf("%q is not an id of an installation", o.Installation)
	}

	e := &External{o: o, prefix: "gozzard." + o.Installation + "." + subjectServer, lost: make(chan struct{}, 1),
		in: make(chan *natsgo.Msg, peersWaiting), out: make(chan peerMessage, externalWaiting),
		peers: newQueues(perPeer, peersTotal), options: natsgo.GetDefaultOptions()}
	e.life, e.end = context.WithCancel(context.Background())
	options, err := e.connOptions()
	if err != nil {
		return nil, err
	}
	for _, set := range options {
		if err := set(&e.options); err != nil {
			return nil, err
		}
	}
	e.lost <- struct{}{}
	return e, nil
}

// SetRoutes does nothing: the brokers know each other.
func (e *External) SetRoutes([]string) error { return nil }

// ClusterAddr is what the record has as the address of this server for others.
func (e *External) ClusterAddr() string { return strings.Join(e.o.URLs, ",") }

// Tell sends a message to another server, or to all others if peer is "". It waits for nothing. Messages to one peer stay
// in order, those to all included.
func (e *External) Tell(peer string, payload []byte) error {
	if peer == "" {
		peer = everyPeer
	} else if err := validateServer(peer); err != nil {
		return fmt.Errorf("cannot send to a peer: %w", err)
	}
	if len(payload) > MaxMessage-sealRoom {
		return fmt.Errorf("cannot send to server %s: message has %d bytes, at most %d are possible", peer, len(payload),
			MaxMessage-sealRoom)
	}
	if !e.put(peerMessage{to: peer, data: payload}) {
		return fmt.Errorf("cannot send to server %s: the NATS cluster takes messages too slowly", peer)
	}
	return nil
}

// put queues a message and reports whether there was room.
func (e *External) put(m peerMessage) bool {
	size := int64(len(m.data))
	if e.waiting.Add(size) <= externalBytes {
		select {
		case e.out <- m:
			return true
		default:
		}
	}
	e.waiting.Add(-size)
	e.drop("messages to other servers were dropped: the NATS cluster takes them too slowly")
	return false
}

// drop counts a message that was dropped. The log has a line per power of two.
func (e *External) drop(why string) {
	if n := e.dropped.Add(1); n&(n-1) == 0 {
		e.o.Log.Warn(why, "count", n)
	}
}

// Run carries messages until ctx ends or Close is called. While no broker is reached it tries for ever.
func (e *External) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(e.keepConnected)
	wg.Go(e.send)
	wg.Go(e.receive)
	wg.Go(e.handOver)

	select {
	case <-ctx.Done():
	case <-e.life.Done():
	}
	e.end()
	e.peers.close()
	wg.Wait()
	e.Close()
	return nil
}

// Close ends Run and the connection.
func (e *External) Close() {
	e.end()
	if c := e.conn.Load(); c != nil {
		c.Close()
	}
	e.closed.Wait()
}

// keepConnected opens the connection, and again when the library gives it up, which it does after some errors.
func (e *External) keepConnected() {
	for {
		select {
		case <-e.life.Done():
			return
		case <-e.lost:
		}

		if err := e.connect(); err != nil {
			e.failedToConnect(nil, err)
			e.lose()
		}
		select {
		case <-e.life.Done():
			return
		case <-time.After(externalPause + rand.N(externalPause)):
		}
	}
}

// lose makes keepConnected open a connection.
func (e *External) lose() {
	select {
	case e.lost <- struct{}{}:
	default:
	}
}

// connect opens the connection and subscribes. Both subscriptions share one channel, so that messages to all and to this
// server stay in order.
func (e *External) connect() error {
	e.closed.Add(1) // gaveUp ends it
	conn, err := e.options.Connect()
	if err != nil {
		e.closed.Done()
		return err
	}
	for _, to := range []string{everyPeer, e.o.Server} {
		if _, err := conn.ChanSubscribe(e.prefix+to+".*", e.in); err != nil {
			conn.Close()
			return err
		}
	}
	e.conn.Store(conn)
	return nil
}

// send seals and sends what waits. One goroutine does both, so that the numbers of messages are in their order.
func (e *External) send() {
	for {
		var m peerMessage
		select {
		case <-e.life.Done():
			return
		case m = <-e.out:
		}
		e.waiting.Add(-int64(len(m.data)))

		conn := e.conn.Load()
		if conn == nil || !conn.IsConnected() {
			continue // it was logged; what matters is in the record
		}
		data := m.data
		if !m.sealed {
			data = e.o.Seal.Seal(m.to, m.data)
		}
		err := conn.Publish(e.prefix+m.to+"."+e.o.Server, data)
		if errors.Is(err, natsgo.ErrMaxPayload) {
			e.drop("messages to other servers were dropped: max_payload of the NATS cluster is too small")
		}
	}
}

// receive opens what other servers send.
func (e *External) receive() {
	for {
		select {
		case <-e.life.Done():
			return
		case m := <-e.in:
			to, from, ok := strings.Cut(strings.TrimPrefix(m.Subject, e.prefix), ".")
			if !ok || from == e.o.Server || validateServer(from) != nil {
				continue
			}
			e.open(to, from, m.Data)
		}
	}
}

// open opens a message and puts it into the queue of its sender.
func (e *External) open(to, from string, data []byte) {
	text, reply, err := e.o.Seal.Open(to, from, data)
	if err != nil {
		if n := e.refused.Add(1); n&(n-1) == 0 {
			e.o.Log.Warn("messages between servers were rejected: something else uses the account of the servers at the NATS "+
				"cluster, or they have different authorities", "server", from, "count", n, "err", err)
		}
		return
	}
	if reply != nil {
		e.put(peerMessage{to: from, data: reply, sealed: true})
	}
	if text != nil && !e.peers.push(from, text) {
		e.drop("messages of other servers were dropped: they come faster than this server takes them in")
	}
}

// handOver hands over messages of peers until the queues are closed.
func (e *External) handOver() {
	for {
		from, data, ok := e.peers.next()
		if !ok {
			return
		}
		e.o.Peer(from.subject, data)
		e.peers.done(from)
	}
}
