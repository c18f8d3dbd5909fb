package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"

	"github.com/gozzard/gozzard"
)

// MinSecret is how long a join secret must be, in bytes.
const MinSecret = 32

const (
	pingInterval = 10 * time.Second
	maxPingsOut  = 2
	// also for authentication: a short one makes a fleet that comes back all at once fail for ever
	dialTimeout  = 30 * time.Second
	readyTimeout = 10 * time.Second

	// The broker knows one bound for all connections. It is sized for the hub, which every agent sends to; what
	// waits for an agent was sent by our own hub.
	maxPending = 64 << 20

	// A fleet that comes back all at once is let in so many a second; without a bound the handshakes of all of them
	// time out together.
	handshakeRate  = 500
	handshakeBurst = 1000

	// And so many of one address: an agent that is put out and tries again without end, or somebody without a
	// certificate, must not take the turns of all. Behind one address there may be a fleet, so it is a fifth.
	handshakesPerAddr = handshakeRate / 5
	addrBurst         = 2 * handshakesPerAddr

	// A link has one subscription and the hub two; without a bound an agent could fill the broker's memory with
	// copies of its own.
	maxSubs = 16
)

// BrokerOptions says how the broker is reached.
type BrokerOptions struct {
	Listen string // host:port, port 0 draws one; "" serves this process only. Without TLS it must be on loopback
	Secret string // agents join with it; at least MinSecret bytes. Not used with TLS
	Log    *slog.Logger

	Refused func(rule string) // told of agents that are kept out; may be nil

	// TLS and Gate go together: agents show a certificate, and the gate decides. TLS 1.3 and a certificate are
	// demanded whatever the configuration says.
	TLS  *tls.Config
	Gate Gate
}

// Broker is a NATS server inside this process. Of all its doors only the one for clients is open.
type Broker struct {
	server      *server.Server
	guard       *doorman
	hubPassword string
	addr        string
}

// StartBroker starts a broker and returns when it takes connections.
func StartBroker(o BrokerOptions) (*Broker, error) {
	if (o.TLS == nil) != (o.Gate == nil) {
		return nil, errors.New("cannot start the broker: certificates need both TLS and a gate")
	}
	if len(o.Secret) < MinSecret && o.Gate == nil {
		return nil, fmt.Errorf("cannot start the broker: the join secret must have at least %d bytes, has %d",
			MinSecret, len(o.Secret))
	}

	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	guard, hubPassword := newDoorman(o.Secret, o.Gate)

	if o.Refused != nil {
		guard.refused = o.Refused
	}

	opts, err := brokerOptions(o, guard)
	if err != nil {
		return nil, err
	}

	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the broker: %w", err)
	}

	guard.server = s
	log := newBrokerLog(o.Log)
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	b := &Broker{server: s, guard: guard, hubPassword: hubPassword}
	select {
	case text := <-log.fatal:
		b.Close()
		return nil, fmt.Errorf("cannot start the broker: %s", text)
	default:
	}

	if !s.ReadyForConnections(readyTimeout) {
		b.Close()
		return nil, errors.New("cannot start the broker: it does not take connections")
	}

	if o.Listen != "" {
		b.addr = s.Addr().String()
	}

	return b, nil
}

func brokerOptions(o BrokerOptions, guard *doorman) (*server.Options, error) {
	opts := &server.Options{
		ServerName:                 "gozzard",
		DontListen:                 o.Listen == "",
		CustomClientAuthentication: guard,
		NoSigs:                     true,
		NoSystemAccount:            true, // no $SYS services to find fault with
		// nothing of ours uses headers, and the broker's own (tracing) name subjects to send to
		NoHeaderSupport: true,
		MaxPayload:      MaxMessage,
		MaxPending:      maxPending,
		MaxSubs:         maxSubs,
		PingInterval:    pingInterval,
		MaxPingsOut:     maxPingsOut,
		AuthTimeout:     dialTimeout.Seconds(),
	}

	if o.TLS != nil {
		opts.TLSConfig, opts.TLSTimeout, opts.TLSHandshakeFirst = admission(o.TLS), dialTimeout.Seconds(), true
	}
	if o.Listen == "" {
		return opts, nil
	}

	host, port, err := listenAddr(o.Listen, o.TLS != nil)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}

	opts.Host, opts.Port = host, port
	return opts, nil
}

// Addr is the host:port that agents connect to; "" when only this process is served.
func (b *Broker) Addr() string { return b.addr }

// Cut ends the connection of an agent, if it has one. It may come again, and is asked about anew.
func (b *Broker) Cut(agent gozzard.AgentID, cloud int) {
	if p, err := newPeer(cloud, agent); err == nil {
		b.guard.cut(p)
	}
}

// keepOut ends the connections of a peer and lets it in again after a while.
func (b *Broker) keepOut(name string, long time.Duration) { b.guard.keepOut(name, long) }

// Close cuts all connections and waits until the broker is gone.
func (b *Broker) Close() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// admission demands what agents must bring, and lets only so many at a time try.
func admission(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion, c.ClientAuth = tls.VersionTLS13, tls.RequireAndVerifyClientCert
	limit, each := rate.NewLimiter(handshakeRate, handshakeBurst), newTurns()
	inner := c.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		ctx, cancel := context.WithTimeout(hello.Context(), dialTimeout)
		defer cancel()
		if err := each.of(hello.Conn.RemoteAddr()).Wait(ctx); err != nil {
			return nil, fmt.Errorf("too many agents connect at once from one address: %w", err)
		}
		if err := limit.Wait(ctx); err != nil {
			return nil, fmt.Errorf("too many agents connect at once: %w", err)
		}
		return inner, nil
	}

	return c
}
