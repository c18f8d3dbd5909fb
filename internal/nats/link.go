package nats

import (
	"context"
	cryptorand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

// LinkOptions says which agent a link belongs to and where it connects: to URL, or to a broker of this process.
type LinkOptions struct {
	// URL is nats://host:port or host:port, on loopback unless there is TLS. Several, with commas between them, are
	// servers of which the link may use any.
	URL    string
	Broker *Broker
	Agent  gozzard.AgentID
	Cloud  int
	Secret string

	// TLS is for a server that requires certificates; the secret is then not used. The link sends Machine to the
	// server, which uses it to find copies of this agent.
	TLS     *tls.Config
	Machine string

	// Open checks the signature of a message and returns the command in it, or an error if the message is not from
	// the server. Nothing is decoded before. nil: commands are not signed, for tests.
	Open func([]byte) ([]byte, error)

	// Silence is how long the link waits for a message of the server before it pings: 12 s, because agents get an answer to
	// a heartbeat every 10 s. Patience is how long the server may take to answer a ping, after which the link connects
	// again: 15 s, less if there are other servers, and twice as long on a new connection.
	Silence, Patience time.Duration

	// Unserved is how long a connection may bring nothing at all from the server before the link tries another server, if there
	// is one: 60 s. It is doubled each time, because a server that is only slow gets slower when its agents come and go.
	Unserved time.Duration

	From netip.Addr // the local address of connections; zero: any

	Command func(*gozzard.Command) // called for each command in the order of arrival, one at a time
	Up      func()                 // called after each connect, when commands and reports can be sent; may be nil
	Down    func()                 // called once after each Up; may be nil
	Log     *slog.Logger
}

// LinkStats are counts since the start.
type LinkStats struct {
	Sent      uint64 // reports
	Received  uint64 // messages
	Malformed uint64 // commands that cannot be decoded
	Newer     uint64 // commands of a newer protocol
	Refused   uint64 // messages that Open rejected
	Connects  uint64
}

// Link is the agent's end of the fabric. The goroutine of Run calls Up and Down, another one calls Command.
type Link struct {
	opts      LinkOptions
	name      string // of the agent
	run       string // random; identifies this run of the program to the server
	servers   servers
	moves     chan struct{} // the server of this connection is not among the servers any more
	publisher publisher

	conn     atomic.Pointer[natsgo.Conn]
	socket   atomic.Pointer[linkConn]           // the newest connection that was dialled
	dialling atomic.Pointer[context.CancelFunc] // cancels the dial that is in progress

	served   atomic.Bool // this connection brought something from the server
	unserved int         // connections in a row that did not; the goroutine of Run has it

	made    time.Time    // has the monotonic clock
	heardAt atomic.Int64 // nanoseconds after made at which the server was last heard

	up       atomic.Bool
	fault    atomic.Pointer[string] // why there is no connection; nil: there is one, or no attempt has ended yet
	rejected atomic.Bool            // the newest failure was about the secret or certificate
	faulty   atomic.Bool            // a failure was logged since the last connect
	noCert   atomic.Bool            // errWantsTLS was logged since the last connect
	logged   onceEach

	sent, received, malformed, newer, unopened, connects atomic.Uint64
}

// NewLink checks the options; Run connects.
func NewLink(o LinkOptions) (*Link, error) {
	// Check the options.
	p, err := newAgentName(o.Cloud, o.Agent)
	if err != nil {
		return nil, fmt.Errorf("cannot create a link: %w", err)
	}
	if o.Secret == "" && o.TLS == nil {
		return nil, errors.New("cannot create a link: no join secret")
	}
	if o.Command == nil {
		return nil, errors.New("cannot create a link: it needs a function for commands")
	}
	if (o.URL == "") == (o.Broker == nil) {
		return nil, errors.New("cannot create a link: it needs either the server's address or a broker of this process")
	}

	l := &Link{opts: o, name: p.String(), run: cryptorand.Text(), moves: make(chan struct{}, 1), made: time.Now()}
	if o.Broker == nil {
		if l.servers.given, err = l.parseServers(strings.Split(o.URL, ",")); err != nil {
			return nil, err
		}
	}

	// Fill in the defaults.
	if o.Silence <= 0 {
		l.opts.Silence = 12 * time.Second
	}
	if o.Patience <= 0 {
		l.opts.Patience = 15 * time.Second
	}
	if o.Unserved <= 0 {
		l.opts.Unserved = time.Minute
	}
	if o.Open == nil {
		l.opts.Open = func(b []byte) ([]byte, error) { return b, nil }
	}
	if o.Up == nil {
		l.opts.Up = func() {}
	}
	if o.Down == nil {
		l.opts.Down = func() {}
	}
	if o.Log == nil {
		l.opts.Log = slog.New(slog.DiscardHandler)
	}

	return l, nil
}

// Run keeps the link connected until the context ends. It returns when all goroutines and connections of the link are
// gone. Only one Run may be active at a time.
func (l *Link) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.session(ctx); err != nil {
			l.opts.Log.Warn("connection to the server failed, the agent connects again", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryDelay(1, true)):
			}
		}
	}
	return nil
}

// Send sends a report to the server. It returns ErrDown when there is no connection. It does not wait until the server
// has the report.
func (l *Link) Send(r *gozzard.Report) error {
	subject := subjectStatus
	if r.Kind == gozzard.ReportHello || r.Kind == gozzard.ReportResults {
		subject = subjectResult
	}

	conn := l.conn.Load()
	if conn == nil {
		return fmt.Errorf("cannot send report: %w", ErrDown)
	}

	encode := func(b []byte) []byte { return wire.AppendReport(b, r) }
	if err := l.publisher.publish(conn, subject+l.name, encode); err != nil {
		return fmt.Errorf("cannot send report: %w", err)
	}

	l.sent.Add(1)
	return nil
}

// Reconnect closes the connection, if there is one, cancels the attempt to connect that is in progress, if there is
// one, and connects again without waiting for the next planned attempt. It does not wait for the new connection.
func (l *Link) Reconnect() error {
	// First unblock the library. It may hold its lock while it dials, reads or writes over a network that is gone.
	dialling := l.dialling.Load()
	if dialling != nil {
		(*dialling)()
	}
	if s := l.socket.Load(); s != nil {
		_ = s.Close() // the library's reader gets an error
	}

	conn := l.conn.Load()
	switch {
	case conn == nil && dialling != nil: // the first attempt is cancelled; Run starts the next one
		return nil
	case conn == nil:
		return fmt.Errorf("cannot reconnect: %w", ErrDown)
	case conn.IsConnected() && l.opts.Broker == nil: // the library reconnects when its reader sees the closed socket
		return nil
	}

	if err := conn.ForceReconnect(); err != nil {
		return fmt.Errorf("cannot reconnect: %w", err)
	}

	return nil
}

// State reports whether there is a connection, and the newest reason if there is none.
func (l *Link) State() (up bool, fault string) {
	if l.up.Load() {
		return true, ""
	}
	if f := l.fault.Load(); f != nil {
		fault = *f
	}
	return false, fault
}

// Stats returns the counts so far.
func (l *Link) Stats() LinkStats {
	return LinkStats{
		Sent:      l.sent.Load(),
		Received:  l.received.Load(),
		Malformed: l.malformed.Load(),
		Newer:     l.newer.Load(),
		Refused:   l.unopened.Load(),
		Connects:  l.connects.Load(),
	}
}

// receive checks and decodes a command and passes it on.
func (l *Link) receive(m *natsgo.Msg) {
	l.received.Add(1)
	l.served.Store(true)
	l.noteHeard()
	data, err := l.opts.Open(m.Data)
	if err != nil {
		// An attacker can send many, so only the first, second, fourth, eighth and so on are logged.
		if n := l.unopened.Add(1); n&(n-1) == 0 {
			l.opts.Log.Warn("command rejected: it is not from this agent's server", "err", err, "rejected", n)
		}
		return
	}

	cmd, err := wire.DecodeCommand(data)
	switch {
	case errors.Is(err, wire.ErrNewer):
		l.newer.Add(1)
		if l.logged.first("newer") {
			l.opts.Log.Warn("command rejected: the server uses a newer protocol; upgrade the agent", "err", err)
		}
	case err != nil:
		l.malformed.Add(1)
		if l.logged.first("malformed") {
			l.opts.Log.Warn("command cannot be read", "err", err)
		}
	default:
		l.opts.Command(cmd)
	}
}
