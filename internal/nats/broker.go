package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/gozzard/gozzard"
)

// MinSecret is the smallest length of a join secret, in bytes.
const MinSecret = 32

const (
	// The broker pings only connections that have been silent for this long; agents that send heartbeats are not.
	pingInterval = 20 * time.Second
	maxPingsOut  = 1

	// The timeout of authentication too. A short one would make a fleet that reconnects at once fail for ever.
	dialTimeout  = 30 * time.Second
	readyTimeout = 10 * time.Second

	// The broker has one bound for all connections. It is sized for the hub, which receives from every agent. Only
	// the hub sends to agents, so their pending messages are under our control.
	maxPending = 64 << 20

	// A link has one subscription and the hub has up to four. Without a limit an agent could fill the broker's memory with
	// copies of its subscription.
	maxSubs = 16
)

// BrokerOptions says where the broker listens and how agents authenticate.
type BrokerOptions struct {
	Listen string // host:port; port 0: a free one; "": only this process connects. Without TLS it must be on loopback
	Secret string // the join secret of all agents, at least MinSecret bytes; not used with TLS
	Log    *slog.Logger

	Refused func(rule string) // called for connections of banned agents, and above the limits; may be nil

	Connections int // of all agents; 0: as many as the broker can have
	Silent      int // of one address that did not authenticate; 0: any number

	// TLS and Gate go together: agents show a certificate, and the gate decides. The broker requires TLS 1.3 and a
	// certificate, whatever the configuration says.
	TLS  *tls.Config
	Gate Gate

	Cluster *ClusterOptions // nil: the only broker

	Through Through // finds agents that came through a relay; nil: there is no relay

	// Busy reports whether agents that connect have to wait, because the server has not yet opened the sessions of those
	// before them. Several goroutines call it. nil: they never wait. It counts with TLS only.
	Busy func() bool
}

// Broker is a NATS server inside this process. Of all protocols of a NATS server it serves only that of clients, and in
// a cluster that of routes.
type Broker struct {
	server      *server.Server
	auth        *authenticator
	keeper      *doorkeeper // nil: no limit
	hubPassword string
	addr        string
	cluster     *cluster // nil: the only broker
}

// StartBroker starts a broker and returns when it accepts connections.
func StartBroker(o BrokerOptions) (*Broker, error) {
	// Check the options.
	if (o.TLS == nil) != (o.Gate == nil) {
		return nil, errors.New("cannot start the broker: certificates need both TLS and a gate")
	}
	if len(o.Secret) < MinSecret && o.Gate == nil {
		return nil, fmt.Errorf("cannot start the broker: the join secret must have at least %d bytes, has %d",
			MinSecret, len(o.Secret))
	}
	if err := o.validateCluster(); err != nil {
		return nil, fmt.Errorf("cannot start the broker: %w", err)
	}

	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	// Set up the server.
	auth, hubPassword := newAuthenticator(o.Secret, o.Gate)
	auth.nameless, auth.through = o.Cluster != nil, o.Through
	if o.Refused != nil {
		auth.refused = o.Refused
	}
	opts, err := brokerOptions(o, auth)
	if err != nil {
		return nil, err
	}
	joined := newCluster(o.Cluster, opts)
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the broker: %w", err)
	}
	auth.server = s
	if o.Silent > 0 {
		auth.keeper = newDoorkeeper(s, o.Silent, auth.refused, o.Through)
	}
	log := newBrokerLog(o.Log)
	s.SetLoggerV2(log, false, false, false)

	// Start it.
	s.Start()
	b := &Broker{server: s, auth: auth, keeper: auth.keeper, hubPassword: hubPassword, cluster: joined}
	if b.keeper != nil {
		go b.keeper.run()
	}
	if err := awaitReady(s, log.fatal); err != nil {
		b.Close()
		return nil, startError(err, o)
	}
	if o.Listen != "" {
		b.addr = s.Addr().String()
	}
	return b, nil
}

// awaitReady waits until a NATS server accepts connections. It looks for the reason why it cannot start again and again,
// because the port of the cluster is opened last.
func awaitReady(s *server.Server, fatal <-chan string) error {
	for end := time.Now().Add(readyTimeout); ; {
		ready := s.ReadyForConnections(readyTimeout / 50)
		select {
		case text := <-fatal:
			return errors.New(text)
		default:
		}
		if ready {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("it accepts no connections after %s", readyTimeout)
		}
	}
}

// startError says what to do about an address in use: the word broker is not one that the owner of a server has read.
func startError(err error, o BrokerOptions) error {
	if !strings.Contains(err.Error(), "address already in use") {
		return fmt.Errorf("cannot start the broker: %w", err)
	}
	taken := o.Listen + " for agents (--agent-listen)"
	if o.Cluster != nil {
		taken += " or " + o.Cluster.Listen + " for other servers (--cluster-listen)"
	}
	return fmt.Errorf("cannot start the broker: cannot listen on %s: another program, such as a second server on this machine, "+
		"has the address: %w", taken, err)
}

// brokerOptions are the options of the NATS server.
func brokerOptions(o BrokerOptions, auth *authenticator) (*server.Options, error) {
	opts := &server.Options{
		ServerName:                 "gozzard",
		DontListen:                 o.Listen == "",
		CustomClientAuthentication: auth,
		NoSigs:                     true,
		NoSystemAccount:            true, // no $SYS services that could be attacked
		NoSublistCache:             true, // it has room for 1024 subjects: a larger fleet only fills and empties it
		NoHeaderSupport:            true, // Gozzard uses no headers, and those of the broker (tracing) name subjects
		MaxPayload:                 MaxMessage,
		MaxPending:                 maxPending,
		MaxSubs:                    maxSubs,
		PingInterval:               pingInterval,
		MaxPingsOut:                maxPingsOut,
		AuthTimeout:                dialTimeout.Seconds(),
		MaxConn:                    o.Connections,
	}

	if o.TLS != nil {
		opts.TLSConfig, opts.TLSTimeout, opts.TLSHandshakeFirst = limitedTLS(o.TLS, newEntrance(o.Through, o.Cluster != nil, o.Busy)), dialTimeout.Seconds(), true
	}
	if o.Cluster != nil {
		if err := o.Cluster.apply(opts); err != nil {
			return nil, err
		}
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

// Addr is the host:port that agents connect to; "" when only this process connects.
func (b *Broker) Addr() string { return b.addr }

// Cut closes the connection of an agent, if it has one. The agent may connect again; the gate then decides again.
func (b *Broker) Cut(agent gozzard.AgentID, cloud int) {
	if p, err := newAgentName(cloud, agent); err == nil {
		b.auth.disconnect(p)
	}
}

// ban closes the connections of an agent and rejects new ones for a while.
func (b *Broker) ban(name string, d time.Duration) { b.auth.ban(name, d) }

// Close closes all connections and waits until the broker has stopped.
func (b *Broker) Close() {
	b.keeper.close()
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// limitedTLS requires TLS 1.3 and a certificate, and limits the handshakes.
func limitedTLS(base *tls.Config, door *entrance) *tls.Config {
	c := base.Clone()
	c.MinVersion, c.ClientAuth = tls.VersionTLS13, tls.RequireAndVerifyClientCert
	inner := c.Clone()
	var strict sharedTLS

	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if err := door.enter(hello.Context(), hello.Conn.RemoteAddr()); err != nil {
			return nil, err
		}
		if base.GetConfigForClient == nil {
			return inner, nil
		}

		// The authorities of the fleet may have changed.
		now, err := base.GetConfigForClient(hello)
		if err != nil || now == nil {
			return inner, err
		}
		return strict.of(now), nil
	}
	return c
}

// sharedTLS makes configurations strict. Connections keep their configuration, so those that get the same one share its
// strict copy.
type sharedTLS struct {
	mu           sync.Mutex
	base, strict *tls.Config // the newest
}

// of returns a copy that requires TLS 1.3 and a certificate.
func (s *sharedTLS) of(base *tls.Config) *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base != base {
		s.base, s.strict = base, base.Clone()
		s.strict.MinVersion, s.strict.ClientAuth = tls.VersionTLS13, tls.RequireAndVerifyClientCert
	}
	return s.strict
}
