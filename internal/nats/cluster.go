package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// A peer that is frozen is noticed after this time, or sooner if there is something to send.
	routePing     = 5 * time.Second
	routePingsOut = 2

	// How long a handshake of a peer may take. Strangers can hold connections to the port for as long.
	routeTimeout = 10 * time.Second

	defaultCluster = "gozzard"
	everyPeer      = "all"
)

// ClusterOptions join a broker to the brokers of the other servers of an installation. Agents may then connect to any of
// them. Their reports stay at the broker that they are connected to; commands to them, and what servers tell each other,
// reach every broker.
type ClusterOptions struct {
	Server  string // id of this server: letters, digits, - and _
	Name    string // of the cluster; brokers with another name are rejected. "": gozzard
	Listen  string // host:port for peers; port 0: a free one
	Address string // host:port at which peers reach it; "": that of Listen

	// TLS proves servers to each other, in both directions. VerifyConnection is required: it decides which certificates
	// are those of servers. The broker requires TLS 1.3 and a certificate, whatever the configuration says.
	TLS *tls.Config
}

// validate checks the cluster's part of the options.
func (o *BrokerOptions) validateCluster() error {
	c := o.Cluster
	if c == nil {
		return nil
	}
	if err := validateServer(c.Server); err != nil {
		return err
	}
	if o.Listen == "" {
		return errors.New("a broker in a cluster needs an address for agents")
	}
	if o.Gate == nil {
		return errors.New("a cluster needs certificates: agents with a join secret can only use the server of the same machine")
	}
	if c.TLS == nil || c.TLS.VerifyConnection == nil {
		return errors.New("a cluster needs TLS and a check of the peers' certificates")
	}

	for _, address := range []string{c.Listen, c.Address} {
		if _, _, err := splitAddress(address); err != nil && (address != "" || address == c.Listen) {
			return fmt.Errorf("the address %q of the cluster is not of the form host:port: %w", address, err)
		}
	}
	return nil
}

// validateServer checks the id of a server. It becomes a part of subjects.
func validateServer(id string) error {
	if id == "" || len(id) > 64 || id == everyPeer {
		return fmt.Errorf("%q is not an id of a server: it must have 1 to 64 characters and must not be %q", id, everyPeer)
	}
	for _, r := range id {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			continue
		}
		return fmt.Errorf("%q is not an id of a server: it may only have letters, digits, _ and -", id)
	}
	return nil
}

// splitAddress splits host:port. The host may be empty.
func splitAddress(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not a port", p)
	}
	return host, int(n), nil
}

// apply puts the options into those of a NATS server.
func (c *ClusterOptions) apply(opts *server.Options) error {
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		return err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}

	// Only commands and messages of servers cross from one broker to another. A queue group would not do: the broker
	// spreads its messages over the members of all brokers and does not prefer its own (ADR 0063).
	across := &server.SubjectPermission{Allow: []string{subjectOp + ">", subjectServer + ">"}}

	opts.ServerName = c.Server
	opts.Cluster = server.ClusterOpts{
		Name: c.Name, Host: host, Port: port, Advertise: c.Address,
		NoAdvertise: true, // agents learn addresses from signed commands only
		Permissions: &server.RoutePermissions{Import: across, Export: across},
		TLSConfig:   peerTLS(c.TLS), TLSTimeout: routeTimeout.Seconds(), AuthTimeout: routeTimeout.Seconds(),
		PoolSize:     1, // there is one account, and more connections would not carry more of it
		PingInterval: routePing, MaxPingsOut: routePingsOut,
		Compression: server.CompressionOpts{Mode: server.CompressionOff},
	}
	if c.Name == "" {
		opts.Cluster.Name = defaultCluster
	}
	return nil
}

// peerTLS requires TLS 1.3 and a certificate of peers. It limits the handshakes of each address, but not those of all
// together: a stranger must not be able to use up the handshakes of peers, and neither must a fleet that reconnects.
func peerTLS(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion, c.SessionTicketsDisabled = tls.VersionTLS13, true
	if c.ClientAuth != tls.RequireAndVerifyClientCert {
		c.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks it
	}

	perAddr := newHandshakeLimits(nil)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if err := perAddr.of(hello.Conn.RemoteAddr()).Wait(hello.Context()); err != nil {
			return nil, fmt.Errorf("too many connections to the cluster port at once from one address: %w", err)
		}
		return nil, nil // the configuration stays as it is
	}
	return c
}

// cluster is a broker's part of a cluster.
type cluster struct {
	opts ClusterOptions
	base server.Options // of the broker, without routes

	mu     sync.Mutex
	routes []string
}

// newCluster keeps the options of a broker before the broker changes them; nil without a cluster.
func newCluster(o *ClusterOptions, base *server.Options) *cluster {
	if o == nil {
		return nil
	}
	return &cluster{opts: *o, base: *base}
}

// SetRoutes sets the cluster addresses of the peers: host:port. The broker connects to them, and again whenever a
// connection is lost. Its own address may be among them. Connections to peers that stay in the list, and those of
// agents, are not touched. Two brokers need a single connection, so it does not matter which one connects.
func (b *Broker) SetRoutes(addresses []string) error {
	c := b.cluster
	if c == nil {
		return errors.New("cannot set the routes of a broker that is in no cluster")
	}

	// Sort them and leave the own one out.
	own := b.ClusterAddr()
	list := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(addresses))),
		func(a string) bool { return a == own })
	var urls []*url.URL
	for _, a := range list {
		host, port, err := splitAddress(a)
		if err != nil || host == "" || port == 0 {
			return fmt.Errorf("cannot connect to a peer: %q is not of the form host:port", a)
		}
		urls = append(urls, &url.URL{Scheme: "nats-route", Host: net.JoinHostPort(host, strconv.Itoa(port))})
	}

	// Apply what has changed: the broker asks about the connections of all agents again.
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(list, c.routes) {
		return nil
	}
	next := c.base
	next.Routes = urls
	if err := b.server.ReloadOptions(&next); err != nil {
		return fmt.Errorf("cannot connect to the peers %q: %w", list, err)
	}
	c.routes = list
	return nil
}

// ClusterAddr is the host:port at which peers reach the broker; "" outside of a cluster.
func (b *Broker) ClusterAddr() string {
	if b.cluster == nil {
		return ""
	}
	if a := b.cluster.opts.Address; a != "" {
		return a
	}
	if a := b.server.ClusterAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Peers are the ids of the servers whose brokers are connected to this one, sorted.
func (b *Broker) Peers() []string {
	z, err := b.server.Routez(nil)
	if err != nil { // no error is known
		return nil
	}

	var ids []string
	for _, r := range z.Routes {
		ids = append(ids, r.RemoteName)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
