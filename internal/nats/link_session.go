package nats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

const (
	shortestDelay = 10 * time.Millisecond
	firstRange    = 250 * time.Millisecond
	lastRange     = 8 * time.Second
	rejectedRange = 30 * time.Second // a rejection rarely ends soon
	lastFlush     = time.Second
)

// session opens a connection of the library and serves it. The library reconnects any number of times. session ends
// with the context, or with an error when the library gives up.
func (l *Link) session(ctx context.Context) error {
	// Connect. The end of ctx closes the socket while the library waits for a silent server. Later this function closes
	// it, after the last reports are sent.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	release := context.AfterFunc(ctx, end)
	ev := newEvents()
	conn, err := natsgo.Connect(anyServer, l.connOptions(life, ev)...)
	release()
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}

	// Subscribe to commands.
	subDone := make(chan struct{})
	sub, err := conn.Subscribe(subjectOp+l.name, l.receive)
	if err != nil {
		conn.Close()
		<-ev.gone
		return fmt.Errorf("cannot subscribe: %w", err)
	}

	sub.SetClosedHandler(func(string) { close(subDone) })

	// Serve the connection until it ends.
	l.conn.Store(conn)
	err = l.follow(ctx, conn, ev)
	l.conn.Store(nil)

	// Send the last reports and close it. There is nothing to do about reports that cannot be sent now.
	if conn.IsConnected() {
		_ = conn.FlushTimeout(lastFlush)
	}
	end()
	conn.Close()
	<-ev.gone
	<-subDone
	return err
}

// follow calls Up and Down for the events of the connection, and connects again when the server does not answer.
func (l *Link) follow(ctx context.Context, conn *natsgo.Conn, ev *events) error {
	up := false
	defer func() {
		if up {
			l.down()
		}
	}()
	listen := time.NewTimer(l.opts.Silence)
	defer listen.Stop()
	var move, serve <-chan time.Time

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ev.gone:
			if err := conn.LastError(); err != nil {
				return fmt.Errorf("the library gave up the connection: %w", err)
			}
			return ErrDown
		case <-listen.C:
			if up && l.silence() >= l.opts.Silence {
				l.ping(ctx, conn, l.patience())
				l.noteHeard() // or it is given up
			}
			listen.Reset(l.untilSilent())
		case <-l.moves:
			move = time.After(rand.N(moveWithin))
		case <-move:
			move = nil
			l.leaveServer()
		case <-serve:
			l.leaveUnserved(up)
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
			if up = l.ping(ctx, conn, 2*l.opts.Patience); up {
				l.connected()
				serve = time.After(l.serveWithin())
			}
		}
	}
}

// noteHeard notes that the server was heard.
func (l *Link) noteHeard() { l.heardAt.Store(int64(time.Since(l.made))) }

// silence is how long the server was not heard.
func (l *Link) silence() time.Duration { return time.Since(l.made) - time.Duration(l.heardAt.Load()) }

// untilSilent is how long to wait before the link looks again whether the server is silent.
func (l *Link) untilSilent() time.Duration {
	if wait := l.opts.Silence - l.silence(); wait > 0 {
		return wait
	}
	return l.opts.Silence // there is no connection
}

// patience is how long a silent server may take to answer. With other servers it is shorter: the lease of the session is over by
// then, so nothing is lost if the server was only slow.
func (l *Link) patience() time.Duration {
	if l.servers.hasOthers() {
		return min(l.opts.Patience, firstPatience)
	}
	return l.opts.Patience
}

// ping returns whether the broker has processed all requests of the connection in time: then the subscription is active.
// If the connection is lost meanwhile, its event follows. If it is not, it is given up: without an event this link would
// stay down for ever, or up without a server.
func (l *Link) ping(ctx context.Context, conn *natsgo.Conn, patience time.Duration) bool {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := conn.FlushWithContext(limited)
	if err == nil {
		return true
	}

	if ctx.Err() == nil && conn.IsConnected() {
		l.opts.Log.Info("the server does not answer, the agent connects again", "err", err)
		if err := l.Reconnect(); err != nil {
			l.opts.Log.Debug("cannot reconnect", "err", err)
		}
	}
	return false
}

func (l *Link) connected() {
	l.rejected.Store(false)
	l.faulty.Store(false)
	l.noCert.Store(false)
	l.fault.Store(nil)
	l.servers.connected()
	l.served.Store(false)
	l.noteHeard()
	l.connects.Add(1)
	l.up.Store(true)
	l.opts.Up()
}

func (l *Link) down() {
	l.up.Store(false)
	l.opts.Down()
}

// connOptions are the options of the connection to the server. life ends with the connection.
func (l *Link) connOptions(life context.Context, ev *events) []natsgo.Option {
	opts := append(commonOptions(),
		natsgo.RetryOnFailedConnect(true),
		natsgo.SkipHostLookup(), // the dialer knows the addresses
		natsgo.CustomReconnectDelay(l.nextAttempt),
		natsgo.ConnectHandler(func(*natsgo.Conn) { ev.add(true) }),
		natsgo.ReconnectHandler(func(*natsgo.Conn) { ev.add(true) }),
		natsgo.DisconnectErrHandler(func(_ *natsgo.Conn, err error) {
			if err != nil {
				l.opts.Log.Info("link to the server was cut", "err", err)
				l.setFault(err.Error())
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

	atEnd := func(f func()) func() bool { return context.AfterFunc(life, f) }
	return append(opts, natsgo.SetCustomDialer(dialer{link: l, atEnd: atEnd}))
}

// nextAttempt returns how long to wait before the next attempt. There is no pause while there are servers that were not
// tried yet.
func (l *Link) nextAttempt(attempts int) time.Duration {
	rejected := l.rejected.Load()
	if l.opts.Broker == nil {
		var more, others bool
		if attempts, more, others = l.servers.round(); more {
			return shortestDelay
		}
		rejected = rejected && others
	}

	if rejected {
		l.opts.Log.Warn(l.rejection(), "agent", l.opts.Agent, "cloud", l.opts.Cloud)
	}
	return retryDelay(attempts, rejected)
}

// rejection says why the server may have rejected the agent. The server does not give the reason.
func (l *Link) rejection() string {
	if l.opts.TLS != nil {
		return "the server rejects this agent: it waits for approval, is in quarantine, was revoked, or is banned " +
			"because it sent too much (gozzard hosts shows which)"
	}
	return "the server rejects this agent's join secret, or has banned the agent because it sent too much"
}

// failed records why there is no connection.
func (l *Link) failed(err error) {
	rejected := errors.Is(err, natsgo.ErrAuthorization)
	l.rejected.Store(rejected)
	if rejected {
		l.servers.rejected()
		l.setFault(l.rejection())
		return // logged when the next attempt is planned
	}

	l.setFault(err.Error())
	said := &l.faulty
	if errors.Is(err, errWantsTLS) { // also after another failure: a server that was restarted first refuses connections
		said = &l.noCert
	}
	if !said.Swap(true) {
		l.opts.Log.Warn("connection to the server has an error", "err", err)
	}
}

func (l *Link) setFault(text string) { l.fault.Store(&text) }

// retryDelay is how long to wait before the next attempt. It is random within a range, so that the agents of a fleet
// do not all reconnect at the same time. The range doubles with each attempt. After a rejection the delay is at least
// half of rejectedRange.
func retryDelay(attempts int, rejected bool) time.Duration {
	if rejected {
		return rejectedRange/2 + rand.N(rejectedRange/2)
	}
	return shortestDelay + rand.N(min(firstRange<<min(max(attempts-1, 0), 10), lastRange))
}

// events are the connects and disconnects of a connection, in order, for the goroutine that runs follow.
type events struct {
	wake chan struct{}
	gone chan struct{} // closed when the connection is closed for good

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
