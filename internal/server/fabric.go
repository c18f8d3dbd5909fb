package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/signing"
)

// Fabric carries commands to agents and brings their reports.
type Fabric interface {
	// Send hands over a command without waiting for the agent.
	Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error
	// Cut ends the connections of an agent.
	Cut(agent gozzard.AgentID, cloud int)
	// Flag says what is wrong with an agent that sends too much, "" for nothing.
	Flag(agent gozzard.AgentID) string
	// Counts is what went through the fabric since the start.
	Counts() gozzard.FabricCounts
	// Addr is where agents connect to; "" when they cannot.
	Addr() string
	// Run hands reports on until ctx ends.
	Run(ctx context.Context) error
	Close()
}

// FabricOptions is what a fabric needs of the server.
type FabricOptions struct {
	Listen string // "": only agents in this process
	Secret string // of agents without certificates

	// TLS and Registry are set when agents connect with certificates.
	TLS      *tls.Config
	Registry *enrol.Registry

	Signer *signing.Signer
	Limits nats.Limits // of one agent

	Connections int // of all agents; 0: any number
	Silent      int // of one address that did not authenticate; 0: any number

	Cluster *nats.ClusterOptions              // nil: the only server
	Peer    func(from string, payload []byte) // receives what other servers tell

	Through nats.Through // finds agents that came through a relay; nil: there is no relay

	Busy func() bool // reports whether agents that connect have to wait; nil: never

	Receive func(from gozzard.AgentID, cloud int, r *gozzard.Report)
	Refused func(rule string)
	Log     *slog.Logger
}

// openFabric opens the way to the agents. What they report waits until Run.
func (s *Server) openFabric(ctx context.Context) (err error) {
	o := FabricOptions{Listen: s.options.AgentListen, Secret: s.options.JoinSecret, Signer: s.signer,
		Limits: s.options.Limits.ofAgents(), Receive: s.receive, Refused: s.metrics.ReportRefused, Log: s.options.Log,
		Connections: s.options.Limits.AgentConnections, Silent: s.options.Limits.silent(), Cluster: s.clusterOptions(),
		Peer: s.hearPeer, Through: s.through(), Busy: s.joining.Full}
	if s.trust.registry != nil {
		o.TLS, o.Registry, o.Secret = s.trust.authority.FabricTLS(), s.trust.registry, ""
	}

	open := s.options.NewFabric
	if open == nil {
		open = newNATSFabric
	}
	if s.fabric, err = open(o); err != nil {
		return err
	}
	s.onClose("cannot close the fabric", func() error { s.fabric.Close(); return nil })
	if f, ok := s.fabric.(clusterFabric); ok && o.Cluster != nil {
		s.cluster, s.keySync = newCluster(s, f), newKeySync(s)
	}
	if s.options.Cluster.outside() {
		if err := s.openExternal(ctx); err != nil {
			return err
		}
	}

	// The two need each other: the fabric asks the registry which agents to accept, and the registry cuts connections.
	if s.trust.registry != nil {
		s.trust.registry.OnCut(s.fabric.Cut)
	}
	return nil
}

// cut ends the connections of an agent that may not be connected any more. Its host is offline at once, not only when its
// lease is over.
func (s *Server) cut(agent gozzard.AgentID, cloud int) {
	s.fabric.Cut(agent, cloud)
	s.plane.Disconnected(agent)
}

// receive hands the reports of agents to the control plane. It is called while the server runs.
func (s *Server) receive(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if s.restore.Holds() { // the agent sends HELLO again
		s.metrics.ReportRefused("restored")
		return
	}
	if s.keySync.isBehind() { // agents that know the newer key would not understand the answer
		s.metrics.ReportRefused("old_key")
		return
	}
	s.plane.Receive(from, cloud, r)
}

// downgraded puts an enrolled agent into quarantine that came back with an older protocol.
func (s *Server) downgraded(agent gozzard.AgentID, said, known uint32) {
	if s.trust.registry != nil {
		s.trust.registry.Downgraded(agent, said, known)
	}
}

// copied puts an enrolled agent into quarantine of which copies run at several servers. All of them disconnect it when they
// hear of that.
func (s *Server) copied(agent gozzard.AgentID, cloud int) {
	if s.trust.registry != nil {
		s.trust.registry.Clone(agent, cloud)
	}
}

// natsFabric is a broker in this process and the server's end of it.
type natsFabric struct {
	*nats.Hub
	broker *nats.Broker
}

func newNATSFabric(o FabricOptions) (Fabric, error) {
	bo := nats.BrokerOptions{Listen: o.Listen, Secret: o.Secret, TLS: o.TLS, Refused: o.Refused, Log: o.Log,
		Connections: o.Connections, Silent: o.Silent, Cluster: o.Cluster, Through: o.Through, Busy: o.Busy}
	if o.Registry != nil {
		bo.Gate = o.Registry
	}
	broker, err := nats.StartBroker(bo)
	if err != nil {
		return nil, err
	}

	hub, err := nats.NewHub(nats.HubOptions{Broker: broker, Receive: o.Receive, Signer: o.Signer, Limits: o.Limits,
		Refused: o.Refused, Log: o.Log, Peer: o.Peer})
	if err != nil {
		broker.Close()
		return nil, err
	}

	return &natsFabric{hub, broker}, nil
}

// Addr implements Fabric.
func (f *natsFabric) Addr() string { return f.broker.Addr() }

// SetRoutes implements clusterFabric.
func (f *natsFabric) SetRoutes(addresses []string) error { return f.broker.SetRoutes(addresses) }

// ClusterAddr implements clusterFabric.
func (f *natsFabric) ClusterAddr() string { return f.broker.ClusterAddr() }

// Cut implements Fabric.
func (f *natsFabric) Cut(agent gozzard.AgentID, cloud int) { f.broker.Cut(agent, cloud) }

// Counts implements Fabric.
func (f *natsFabric) Counts() gozzard.FabricCounts { return f.Stats() }

// Close implements Fabric.
func (f *natsFabric) Close() {
	f.Hub.Close()
	f.broker.Close()
}

// dispatcher measures how long it takes to hand over a command.
type dispatcher struct {
	fabric  Fabric
	observe func(took time.Duration)
}

// Send implements control.Dispatcher.
func (d dispatcher) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	began := time.Now()
	defer func() { d.observe(time.Since(began)) }()
	return d.fabric.Send(to, cloud, cmd)
}
