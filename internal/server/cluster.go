package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/record"
)

// ClusterOptions make a server one of several that share a record.
type ClusterOptions struct {
	Listen  string // address for the other servers; "": the server is alone, or External says how it reaches them
	Address string // at which the others reach it; "": that of Listen

	External ExternalOptions // in place of Listen
}

// shared reports whether the server is one of several.
func (o *ClusterOptions) shared() bool { return o.Listen != "" || o.outside() }

// outside reports whether the servers reach each other through a NATS cluster that is not Gozzard's.
func (o *ClusterOptions) outside() bool { return len(o.External.URLs) > 0 }

const (
	clusterEvery = 2 * time.Second  // between two looks at the other servers
	serverAway   = time.Hour        // servers that were not seen for as long are not named to agents
	clusterGone  = 30 * time.Second // servers that were not seen for as long are not called
	clusterRead  = 5 * time.Second  // how long a look at the other servers may take
	clusterFresh = 10 * time.Second // servers that were not seen for as long may have ended
)

// checkCluster finds settings that a cluster needs.
func (o *Options) checkCluster() error {
	c, flag := &o.Cluster, "--cluster-listen"
	if c.outside() {
		flag = "--cluster-nats"
	}
	switch x := &c.External; {
	case c.Listen != "" && c.outside():
		return errors.New("--cluster-listen and --cluster-nats do not go together: all servers reach each other in one of the two ways")
	case c.Listen == "" && c.Address != "":
		return errors.New("--cluster-address needs --cluster-listen")
	case !c.outside() && x.CA+x.Credentials+x.Cert+x.Key != "":
		return errors.New("--cluster-nats-ca, --cluster-nats-credentials, --cluster-nats-cert and --cluster-nats-key need --cluster-nats")
	case !c.shared():
		return nil
	case o.Record == "":
		return errors.New(flag + " needs --record: several servers share a record in PostgreSQL, and this record is a file")
	case !o.enrols():
		return errors.New(flag + " needs hosts with certificates: use --enrol, or an --agent-listen beyond this machine")
	case c.outside():
		return o.checkExternal()
	}
	return nil
}

// clusterFabric reaches other servers.
type clusterFabric interface {
	Tell(peer string, payload []byte) error
	SetRoutes(addresses []string) error
	ClusterAddr() string
}

// cluster is the server's part in a cluster.
type cluster struct {
	s      *Server
	id     string
	fabric clusterFabric
	list   atomic.Pointer[[]gozzard.ServerAddress] // the servers that agents may use; nil: not read yet
	relays atomic.Pointer[[]string]                // the addresses of servers for relays; nil: not read yet
	wake   chan struct{}                           // capacity 1: the list of servers was changed

	// The goroutine of Run has these.
	drain     drain
	balance   balance
	isolation isolation
}

func newCluster(s *Server, f clusterFabric) *cluster {
	return &cluster{s: s, id: s.id, fabric: f, wake: make(chan struct{}, 1), drain: drain{s: s}, balance: balance{s: s},
		isolation: isolation{s: s}}
}

// look makes Run read the list of servers now.
func (c *cluster) look() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// agentAddress is where agents reach this server: as configured, or on the machine where other servers reach it.
func (c *cluster) agentAddress() string {
	o := &c.s.options
	if o.Trust.Address != "" {
		return o.Trust.Address
	}
	host, port, err := net.SplitHostPort(c.s.fabric.Addr())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsUnspecified() {
		return net.JoinHostPort(host, port)
	}
	if host, _, err = net.SplitHostPort(c.fabric.ClusterAddr()); err != nil {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// agentServers are the servers that agents of a cloud area may use. In an area with relays these are the relays: its hosts
// do not reach the servers.
func (s *Server) agentServers(cloud int) []gozzard.ServerAddress {
	if s.relays.desk != nil {
		if list, has := s.relays.desk.ServersOf(cloud); has {
			return list
		}
	}
	if s.cluster == nil {
		return nil
	}
	if list := s.cluster.list.Load(); list != nil {
		return *list
	}
	return nil
}

// clusterOptions are those of the broker; nil: the server is alone.
func (s *Server) clusterOptions() *nats.ClusterOptions {
	o := &s.options
	if o.Cluster.Listen == "" {
		return nil
	}
	return &nats.ClusterOptions{Server: s.id, Listen: o.Cluster.Listen, Address: o.Cluster.Address,
		TLS: s.trust.authority.PeerTLS(s.id)}
}

// Tell implements control.PeerLink.
func (c *cluster) Tell(to string, n *gozzard.PeerNews) error {
	b, err := nats.EncodeNews(n)
	if err != nil {
		return err
	}
	return c.fabric.Tell(to, b)
}

// hearPeer takes in what another server tells.
func (s *Server) hearPeer(from string, payload []byte) {
	n, err := nats.DecodeNews(payload)
	if err == nil && n.From != from {
		err = fmt.Errorf("it names %.80q as its sender", n.From)
	}
	if err != nil {
		s.options.Log.Warn("cannot read a message of another server, which may have another version", "server", from, "err", err)
		return
	}
	if n.Key != nil {
		s.keySync.hear(n)
		return
	}
	if s.plane != nil && s.plane.Plane != nil { // else it is about to start, and asks for everything
		s.plane.Hear(n)
	}
}

// Run finds the other servers in the record and keeps the way to them open, until ctx ends.
func (c *cluster) Run(ctx context.Context) error {
	tick := time.NewTicker(clusterEvery)
	defer tick.Stop()
	known := ""
	for {
		if list, err := c.read(ctx); err == nil {
			known = c.follow(list, known)
			c.arrange(list, time.Now())
		} else if ctx.Err() == nil {
			c.s.options.Log.Warn("cannot read the list of servers; the server tries again soon", "err", err)
			c.isolation.tick(time.Now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-tick.C:
		}
	}
}

// read reads the list of servers. A database that is silent does not keep Run from its other work.
func (c *cluster) read(ctx context.Context) ([]record.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterRead)
	defer cancel()
	return c.s.store.Servers(ctx)
}

// arrange sends agents of this server elsewhere, if it is drained or has too many.
func (c *cluster) arrange(list []record.Server, now time.Time) {
	own, ok := ownRow(list, c.id)
	if !ok { // not recorded yet
		return
	}
	c.drain.set(own.Drained, now)
	c.drain.tick(now)
	c.balance.tick(list, now)
}

// spread tells agents which servers they may use, if these are others than before. A server that is away for a while stays:
// agents try the next one by themselves.
func (c *cluster) spread(list []record.Server) {
	var now []gozzard.ServerAddress
	var relays []string
	for _, v := range list {
		if v.RelayAddress != "" && !v.Drained && v.Ago < serverAway {
			relays = append(relays, v.RelayAddress)
		}
		a := gozzard.ServerAddress{Agents: v.AgentAddress, API: v.URL}
		if a.Validate() == nil && !v.Drained && v.Ago < serverAway {
			now = append(now, a)
		}
	}
	c.relays.Store(&relays)
	if before := c.list.Load(); before != nil && slices.Equal(*before, now) {
		return
	}
	c.list.Store(&now)
	c.s.plane.ServersChanged()
}

// follow opens the way to the servers that are there, if they are others than before.
func (c *cluster) follow(list []record.Server, before string) string {
	var others, routes, running []string
	for _, v := range list {
		if v.ID != c.id && v.Address != "" && v.Ago < clusterGone {
			others = append(others, v.Address)
			if !strings.Contains(v.Address, "://") { // that of a NATS cluster, which this server does not use
				routes = append(routes, v.Address)
			}
		}
		if v.ID != c.id && v.Address != "" && v.Ago < clusterFresh {
			running = append(running, v.ID)
		}
	}
	c.s.plane.Expect(running)
	c.isolation.reached(len(running) > 0)
	c.spread(list)
	now := strings.Join(others, " ")
	if now == before {
		return before
	}
	if err := c.fabric.SetRoutes(routes); err != nil {
		c.s.options.Log.Error("cannot reach the other servers; the server tries again soon", "servers", now, "err", err)
		return before
	}
	c.s.options.Log.Info("other servers share the record", "servers", now)
	return now
}
