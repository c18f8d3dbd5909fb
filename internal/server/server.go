package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/auditexport"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/lease"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/notify"
	"github.com/gozzard/gozzard/internal/ratelimit"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/upgrade"
	"github.com/gozzard/gozzard/internal/waves"
)

// Server is a server with all its parts.
type Server struct {
	options Options
	metrics *api.Metrics

	outside     signing.Outside // keys that are not in the data folder; nil: none
	signer      *signing.Signer
	joinFile    string // names the signing key to agents of this machine; "": there is none
	id          string // of this server among all of its installation
	opened      time.Time
	leases      *lease.Keeper // nil: this server is alone
	store       *sqlstore.Store
	replaced    bool        // the record is new, in place of a lost one
	pages       *pageChecks // compares the pages of the record with their checksums
	seen        *seenMark   // notes how far the record in a database has come; nil: the record is a file
	trust       trust
	relays      relays
	restore     *enrol.Restore
	fabric      Fabric
	external    *nats.External // nil: the server is alone, or the brokers of the servers are connected
	cluster     *cluster       // nil: the server is alone
	keySync     *keySync       // nil: the server is alone
	changes     *changes       // by other servers; nil: the server is alone
	fleet       *fleet.Index
	live        *live.Hub
	plane       *Plane
	joining     *control.Joining // agents that are joining
	upgrades    *upgrade.Runner  // nil: no host is enrolled here
	accounts    *auth.Accounts
	second      secondPerson
	jobs        *waves.Runner
	configs     *configfile.Files
	cmdb        *cmdb.Sync        // nil: businesses come from documents only
	cmdbCalls   *cmdbCalls        // nil as well then
	backups     *backup.Scheduler // nil: the server makes no backups
	checkpoints *checkpoints      // nil: none are signed
	refusals    *audit.Recorder   // rows about refused requests
	exports     []*auditexport.Exporter
	telemetry   telemetry
	notify      *notify.Engine
	handler     http.Handler
	listener    net.Listener

	stopping chan struct{} // closed when Run begins to end, so that event streams end
	closers  []func()      // what Close calls, the last one first
}

// Part is something that runs as long as the server.
type Part interface {
	Run(ctx context.Context) error
	Close()
}

// New opens the parts of a server in the order in which they need each other. When a part cannot be opened, the parts
// before it are closed. Nothing is served before Run.
func New(ctx context.Context, o Options) (_ *Server, err error) {
	o.Limits.fitFiles(openFiles(), o.Log)
	o.shared = o.shared || o.Cluster.shared()
	if o.Now == nil {
		o.Now = testClock()
	}
	s := &Server{options: o, metrics: api.NewMetrics(), stopping: make(chan struct{}), joining: control.NewJoining(o.Now)}
	if err := errors.Join(o.SecondPerson.parse(&s.second), o.checkCluster(), o.checkRelay()); err != nil {
		return nil, err
	}
	if err := o.checkEvents(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()

	for _, open := range []func(context.Context) error{
		s.openRecord,       // the data folder and the database
		s.openServer,       // the id of this server, and the work that it does for all
		s.openSecrets,      // the signing key, the join secret
		s.openTrust,        // the authority, and the registry of enrolled hosts
		s.openRestore,      // whether hosts wait because the record came out of a backup
		s.openRelays,       // relays of closed networks
		s.openFabric,       // the way to the agents
		s.openAudit,        // rows about refusals and repeated queries, and signatures over the audit
		s.openTelemetry,    // traces and metrics to a collector
		s.openPlane,        // the control plane behind its limits
		s.openUpgrades,     // releases for enrolled hosts
		s.openAccounts,     // apps, users and grants
		s.openSecondPerson, // requests that wait for a second person
		s.openJobs,         // jobs in waves
		s.openCMDB,         // businesses from BlueKing CMDB
		s.openBackups,      // backups on a schedule
		s.openExports,      // the audit to other systems
		s.openNotify,       // alerts to receivers
		s.openChanges,      // what other servers change
		s.openDoors,        // the APIs and their table of routes
		s.openListener,     // the address of the APIs
		s.firstAccounts,    // the accounts of a new record
		s.moveCredentials,  // the present address in credentials.json
		s.checkAccounts,    // what an admin has to decide about accounts of earlier versions
	} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}

	return s, nil
}

// Run serves until ctx ends or a part fails. It stops all parts and closes the server before it returns.
func (s *Server) Run(ctx context.Context) error {
	s.options.Log.Info("server started", "url", s.URL(), "agents", s.AgentAddr(), "data", s.options.Data,
		"version", s.options.Version)
	return s.run(ctx)
}

// run is Run with other parts beside it.
func (s *Server) run(ctx context.Context, others ...Part) error {
	defer s.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { close(s.stopping) })

	parts := append(s.parts(), s.onlyOne()...)
	for _, p := range others {
		parts = append(parts, p.Run)
	}

	// Run them together: the end of one is the end of all.
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, run := range parts {
		wg.Go(func() { defer cancel(); errs[i] = run(ctx) })
	}

	wg.Wait()
	return errors.Join(errs...)
}

// parts are what every server runs.
func (s *Server) parts() []func(context.Context) error {
	parts := []func(context.Context) error{s.plane.Run, s.fabric.Run, s.live.Run, s.refusals.Run, s.serve, keepMemorySmall}
	if s.pages != nil {
		parts = append(parts, s.pages.Run)
	}
	if s.seen != nil {
		parts = append(parts, s.seen.Run)
	}
	parts = append(parts, s.telemetry.parts()...)
	if s.trust.registry != nil {
		parts = append(parts, s.trust.registry.Run)
	}
	if s.relays.door != nil {
		parts = append(parts, s.relays.door.Run, s.serveRelayed)
	}
	if s.leases == nil {
		return parts
	}

	parts = append(parts, s.leases.Run, s.keepServer, s.changes.Run)
	if s.cluster != nil {
		parts = append(parts, s.cluster.Run, s.keySync.Run)
	}
	if s.external != nil {
		parts = append(parts, s.external.Run)
	}
	if s.upgrades != nil {
		parts = append(parts, s.upgrades.Follow)
	}
	return parts
}

// Close closes the parts of a server that does not run, the last one first. A second call does nothing.
func (s *Server) Close() {
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		closeLast := s.closers[last]
		s.closers = s.closers[:last]
		closeLast()
	}
}

// onClose adds what Close does. An error is logged under a message.
func (s *Server) onClose(message string, closePart func() error) {
	s.closers = append(s.closers, func() {
		if err := closePart(); err != nil {
			s.options.Log.Error(message, "err", err)
		}
	})
}

// Handler serves all doors with their limits.
func (s *Server) Handler() http.Handler { return s.handler }

// Parts are the parts of a server that tests look at.
type Parts struct {
	Store    *sqlstore.Store
	Plane    *Plane
	Fleet    *fleet.Index
	Jobs     *waves.Runner
	Configs  *configfile.Files
	Upgrades *upgrade.Runner
	Registry *enrol.Registry
}

// Parts gives the parts of a server to tests that compare what was answered with what was recorded.
func (s *Server) Parts() Parts {
	return Parts{Store: s.store, Plane: s.plane, Fleet: s.fleet, Jobs: s.jobs, Configs: s.configs, Upgrades: s.upgrades,
		Registry: s.trust.registry}
}

func (s *Server) openSecrets(context.Context) (err error) {
	if err := s.openKeys(); err != nil {
		return err
	}
	if s.options.JoinSecret == "" && !s.options.enrols() {
		s.joinFile = filepath.Join(s.options.Data, backup.JoinFile)
		s.options.JoinSecret, err = keptJoinFile(s.joinFile, s.signer.Key())
	}
	return err
}

func (s *Server) openPlane(ctx context.Context) (err error) {
	o := &s.options
	limits := o.Limits.Options
	limits.Refused = s.metrics.ReportRefused

	s.fleet = fleet.New()
	limits.Blast.Platform = blueking.PlatformApps()
	s.plane = &Plane{guard: ratelimit.New(limits)}
	var addrs func(gozzard.AgentID, []gozzard.HostAddr) []gozzard.HostAddr
	var gone func(gozzard.AgentID) bool
	if s.trust.registry != nil { // an enrolled agent does not decide which addresses it has
		addrs = s.trust.registry.Addrs
		gone = func(a gozzard.AgentID) bool { return s.trust.registry.StateOf(a) == enrol.StateRemoved }
	}
	var link control.PeerLink
	var heard func([]string)
	if s.cluster != nil {
		link, heard = s.cluster, s.changes.hear
	}
	var tracer control.Tracer // not one with a nil *tracing.Tracer in it
	if s.telemetry.tracer != nil {
		tracer = s.telemetry.tracer
	}
	s.plane.Plane, err = control.New(ctx, control.Options{
		Tracer: tracer,
		Peers:  link, ThroughHome: s.external != nil, Server: s.id, Changed: heard, Servers: s.agentServers,
		Store: s.store, Topology: s.store, Dispatch: dispatcher{s.fabric, s.metrics.ObserveFabric("send")}, Live: s.fleet,
		Log: o.Log, Interval: o.Interval, Keep: o.Keep, KeepEvents: o.KeepEvents, MostEvents: o.MaxEvents, Now: o.Now,
		Addrs: addrs, Gone: gone,
		Hold:   s.holdRoot,
		Rights: s.rightsLater, FoldQuery: s.refusals.FoldQuery, AuditRead: s.refusals.Read,
		Quota: o.Limits.InFlight, Admit: admission{s.plane.guard, o.shared}, HelloRate: offBelowZero(o.Limits.HelloRate), Joining: s.joining,
		Observe: control.Observer{Accepted: s.metrics.TaskAccepted, Settled: s.metrics.AttemptSettled,
			Refused: s.metrics.ReportRefused, Update: s.updateAnswered, Downgraded: s.downgraded, Copied: s.copied},
	})
	if err != nil {
		return err
	}

	if s.trust.registry != nil {
		s.trust.registry.OnReaddress(s.plane.Readdress)
		s.trust.registry.OnCut(s.cut)
		s.relays.desk.OnChange(s.plane.ServersChanged)
		if err := s.forgetRemoved(ctx); err != nil {
			return err
		}
	}
	s.live = live.New(live.Options{Fleet: s.fleet, Places: s.plane, Log: o.Log})
	s.metrics.Watch(s.fleet, s.fabric.Counts)
	s.metrics.WatchLive(s.live)
	return s.rememberQuota(ctx)
}

func (s *Server) openJobs(context.Context) error {
	s.configs = configfile.New(configfile.Options{Store: s.store, Plane: s.plane, Hosts: s.plane, Log: s.options.Log, Now: s.options.Now})
	var trace func(context.Context, gozzard.Caller) gozzard.Trace
	if s.telemetry.tracer != nil {
		trace = s.telemetry.tracer.Of
	}
	s.jobs = waves.New(waves.Options{Trace: trace, Door: gsekit.Door, Store: s.store, Plane: s.plane, Worker: s.configs, Rights: s.rightsLater,
		Log: s.options.Log, Now: s.options.Now, Shared: s.options.shared})
	return nil
}
