package nats

import (
	"context"
	cryptorand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/wire"
)

const (
	shortestTry = 10 * time.Millisecond
	firstRetry  = 250 * time.Millisecond
	slowestTry  = 8 * time.Second
	refusedTry  = 30 * time.Second // the secret will not become right by itself
	flushBudget = 30 * time.Second
	lastFlush   = time.Second
)

// LinkOptions says whom a link serves and where it connects: to URL, or to a broker of this process.
type LinkOptions struct {
	URL    string // nats://host:port or host:port, on loopback unless there is TLS
	Broker *Broker
	Agent  gozzard.AgentID
	Cloud  int
	Secret string

	// TLS is how a server is reached that asks for certificates; then the secret is not used. Machine is told to
	// it, to find copies of this agent.
	TLS     *tls.Config
	Machine string

	// Open gives the bytes of a command out of what arrived, or says why it is not from the server. Nothing is read
	// before. nil: commands come as they are, for tests.
	Open func([]byte) ([]byte, error)

	Command func(*gozzard.Command) // called in the order of arrival, one at a time
	Up      func()                 // after each connect, when commands can arrive and reports be sent; may be nil
	Down    func()                 // once after each Up; may be nil
	Log     *slog.Logger
}

// LinkStats counts since the start.
type LinkStats struct {
	Sent      uint64
	Received  uint64
	Malformed uint64
	Newer     uint64 // commands of a newer protocol
	Refused   uint64 // what Open refused
	Connects  uint64
}

// Link is the agent's end of the fabric. Up and Down are called from the goroutine of Run, Command from another.
type Link struct {
	opts     LinkOptions
	name     string
	run      string // of this program, for the server
	url      string
	conn     atomic.Pointer[natsgo.Conn]
	socket   atomic.Pointer[linkConn]           // the newest that was dialled
	dialling atomic.Pointer[context.CancelFunc] // gives up the dial that is under way
	// why there is no connection; nil: there is one, or nothing was tried yet
	fault   atomic.Pointer[string]
	up      atomic.Bool
	refused atomic.Bool // the newest failure was about the secret
	faulty  atomic.Bool // a failure was logged since the last connect
	said    onceEach
	out     outbox

	sent, received, malformed, newer, unopened, connects atomic.Uint64
}

// NewLink checks the options; Run connects.
func NewLink(o LinkOptions) (*Link, error) {
	p, err := newPeer(o.Cloud, o.Agent)
	if err != nil {
		return nil, fmt.Errorf("cannot make a link: %w", err)
	}
	if o.Secret == "" && o.TLS == nil {
		return nil, errors.New("cannot make a link: no join secret")
	}
	if o.Command == nil {
		return nil, errors.New("cannot make a link: nobody takes commands")
	}
	if (o.URL == "") == (o.Broker == nil) {
		return nil, errors.New("cannot make a link: it needs either the server's address or a broker of this process")
	}

	l := &Link{opts: o, name: p.String(), run: cryptorand.Text()}

	if o.Broker == nil {
		if l.url, err = serverAddr(o.URL, o.TLS != nil); err != nil {
			return nil, err
		}
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

// Run keeps the link connected until the context ends, and returns when nothing of it is left. A link runs once at
// a time.
func (l *Link) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.session(ctx); err != nil {
			l.opts.Log.Warn("link to the server ended, it is made anew", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(retryDelay(1, true)):
			}
		}
	}
	return nil
}

// Send hands a report to the fabric; ErrDown when there is no connection. It does not wait for the server, nor know
// whether there is one.
func (l *Link) Send(r *gozzard.Report) error {
	subject := subjectStatus

	if r.Kind == gozzard.ReportHello || r.Kind == gozzard.ReportResults {
		subject = subjectResult
	}

	conn := l.conn.Load()
	if conn == nil {
		return fmt.Errorf("cannot send report: %w", ErrDown)
	}
	if err := l.out.publish(conn, subject+l.name, func(b []byte) []byte {
		return wire.AppendReport(b,
			r)
	}); err != nil {
		return fmt.Errorf("cannot send report: %w", err)
	}

	l.sent.Add(1)
	return nil
}

// Reconnect drops the connection, if there is one, gives up the attempt that is under way, if there is one, and
// connects anew without waiting for the next one that is planned. It does not wait for the new connection.
func (l *Link) Reconnect() error {
	// First what the library may be waiting for with its lock held: a dial, an answer or a write to where the
	// network has gone away.
	dialling := l.dialling.Load()
	if dialling != nil {
		(*dialling)()
	}
	if s := l.socket.Load(); s != nil {
		_ = s.Close() // who reads it learns of it
	}

	conn := l.conn.Load()
	switch {
	case conn == nil && dialling != nil: // the first attempt; the next one comes by itself
		return nil
	case conn == nil:
		return fmt.Errorf("cannot connect anew: %w", ErrDown)
	case conn.IsConnected() && l.opts.Broker == nil: // its reader has yet to see the end, and will connect by itself
		return nil
	}

	if err := conn.ForceReconnect(); err != nil {
		return fmt.Errorf("cannot connect anew: %w", err)
	}

	return nil
}

// State tells whether there is a connection, and the newest reason when there is none.
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
		Sent: l.sent.Load(), Received: l.received.Load(), Malformed: l.malformed.Load(), Newer: l.newer.Load(),
		Refused: l.unopened.Load(), Connects: l.connects.Load(),
	}
}

// session is the life of one connection of the library, which survives any number of reconnects. It ends with the
// context, or with an error when the library gave up.
func (l *Link) session(ctx context.Context) error {
	// The socket must end with the context while the library waits on a silent server; later this func ends it,
	// after what was sent.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	release := context.AfterFunc(ctx, end)
	ev := newEvents()
	conn, err := natsgo.Connect(l.url, l.connOptions(life, ev)...)
	release()

	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}

	subDone := make(chan struct{})
	sub, err := conn.Subscribe(subjectOp+l.name, l.receive)
	if err != nil {
		conn.Close()
		<-ev.gone
		return fmt.Errorf("cannot subscribe: %w", err)
	}

	sub.SetClosedHandler(func(string) { close(subDone) })
	l.conn.Store(conn)
	err = l.follow(ctx, conn, ev)
	l.conn.Store(nil)

	if conn.IsConnected() {
		_ = conn.FlushTimeout(lastFlush) // the last reports; nobody is left to act on a failure
	}

	end()
	conn.Close()
	<-ev.gone
	<-subDone
	return err
}

// follow turns the connection's events into Up and Down.
func (l *Link) follow(ctx context.Context, conn *natsgo.Conn, ev *events) error {
	up := false
	defer func() {
		if up {
			l.down()
		}
	}()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ev.gone:
			if err := conn.LastError(); err != nil {
				return fmt.Errorf("the connection was given up: %w", err)
			}
			return ErrDown
		case <-ev.wake:
		}
		for _, connected := range ev.drain() {
			if up {
				up = false
				l.down()
			}
			if !connected || ctx.Err() != nil {
				continue
			}
			if err := flush(ctx, conn); err != nil { // cut again already: the next event is on its way
				l.opts.Log.Debug("link was cut while it was set up", "err", err)
				continue
			}
			l.refused.Store(false)
			l.faulty.Store(false)
			l.fault.Store(nil)
			l.connects.Add(1)
			up = true
			l.up.Store(true)
			l.opts.Up()
		}
	}
}

func (l *Link) down() {
	l.up.Store(false)
	l.opts.Down()
}

// flush returns when the broker has done all that was asked of it: the subscription is in place.
func flush(ctx context.Context, conn *natsgo.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, flushBudget)
	defer cancel()
	return conn.FlushWithContext(ctx)
}

func (l *Link) connOptions(life context.Context, ev *events) []natsgo.Option {
	opts := append(commonOptions(),
		natsgo.RetryOnFailedConnect(true),
		natsgo.CustomReconnectDelay(func(attempts int) time.Duration {
			refused := l.refused.Load()
			if refused {
				l.opts.Log.Warn(l.refusal(), "agent", l.opts.Agent, "cloud", l.opts.Cloud)
			}
			return retryDelay(attempts, refused)
		}),
		natsgo.ConnectHandler(func(*natsgo.Conn) { ev.add(true) }),
		natsgo.ReconnectHandler(func(*natsgo.Conn) { ev.add(true) }),
		natsgo.DisconnectErrHandler(func(_ *natsgo.Conn, err error) {
			if err != nil {
				l.opts.Log.Info("link to the server was cut", "err", err)
				l.blame(err.Error())
			}
			ev.add(false)
		}),
		natsgo.ReconnectErrHandler(func(_ *natsgo.Conn, err error) { l.failed(err) }),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { l.failed(err) }),
		natsgo.ClosedHandler(func(*natsgo.Conn) { close(ev.gone) }),
	)

	if l.opts.TLS != nil {
		opts = append(opts, natsgo.Name(l.opts.Machine+"/"+l.run), natsgo.Secure(l.opts.TLS),
			natsgo.TLSHandshakeFirst())
	} else {
		opts = append(opts, natsgo.Name("agent"), natsgo.UserInfo(l.name, l.opts.Secret))
	}

	if l.opts.Broker != nil {
		return append(opts, natsgo.InProcessServer(l.opts.Broker.server))
	}

	return append(opts, natsgo.SetCustomDialer(dialer{link: l,
		atEnd: func(f func()) func() bool { return context.AfterFunc(life, f) }}))
}

// refusal says what the server does not believe.
func (l *Link) refusal() string {
	if l.opts.TLS != nil {
		return "the server does not let this agent in: it waits for approval, is in quarantine, was revoked, or is muted for what it sent (gozzard hosts says which)"
	}
	return "the server refuses this agent's join secret, or has muted it for what it sent"
}

// failed notes why there is no connection.
func (l *Link) failed(err error) {
	refused := errors.Is(err, natsgo.ErrAuthorization)
	l.refused.Store(refused)
	if refused {
		l.blame(l.refusal())
		return // logged when the next attempt is planned
	}
	l.blame(err.Error())
	if !l.faulty.Swap(true) {
		l.opts.Log.Warn("link to the server has a fault", "err", err)
	}
}

func (l *Link) blame(why string) { l.fault.Store(&why) }

func (l *Link) receive(m *natsgo.Msg) {
	l.received.Add(1)
	data, err := l.opts.Open(m.Data)
	if err != nil {
		if n := l.unopened.Add(1); n&(n-1) == 0 { // ever more rarely: whoever sends such things can send many
			l.opts.Log.Warn("command was refused: it is not from this agent's server", "why", err, "refused", n)
		}
		return
	}

	cmd, err := wire.DecodeCommand(data)
	switch {
	case errors.Is(err, wire.ErrNewer):
		l.newer.Add(1)
		if l.said.first("newer") {
			l.opts.Log.Warn("server speaks a newer protocol and is not understood", "err", err)
		}
	case err != nil:
		l.malformed.Add(1)
		if l.said.first("malformed") {
			l.opts.Log.Warn("command cannot be read", "err", err)
		}
	default:
		l.opts.Command(cmd)
	}
}

// retryDelay is spread over all of a time that doubles from the first to the slowest, so that a fleet does not come
// back in step. Who was refused waits for half of it at least.
func retryDelay(attempts int, refused bool) time.Duration {
	if refused {
		return refusedTry/2 + rand.N(refusedTry/2)
	}
	return shortestTry + rand.N(min(firstRetry<<min(max(attempts-1, 0), 10), slowestTry))
}

// events keeps the order of connects and disconnects for the goroutine that follows them.
type events struct {
	wake chan struct{}
	gone chan struct{} // the connection is closed for good

	mu   sync.Mutex
	list []bool // true: connected
}

func newEvents() *events { return &events{wake: make(chan struct{}, 1), gone: make(chan struct{})} }

func (e *events) add(connected bool) {
	e.mu.Lock()
	e.list = append(e.list, connected)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *events) drain() []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}
