package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/blueking"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/blueking/gse"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/blueking/job"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/ratelimit"
	"github.com/gozzard/gozzard/internal/signing"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/upgrade"
	"github.com/gozzard/gozzard/internal/waves"
)

// nodeConfig is what a server needs to know.
type nodeConfig struct {
	Data        string
	Listen      string
	AgentListen string // "": agents in this process only
	JoinSecret  string
	Signer      *signing.Signer
	Trust       trustConfig
	Login       loginConfig
	Interval    time.Duration
	Keep        time.Duration
	Checkpoint  time.Duration // how often the audit's newest row is signed; 0: never
	Guard       guardConfig
	CMDB        cmdbConfig
	Backup      backupConfig
	Release     releaseConfig
	Log         *slog.Logger
}

// node is a running server: the record, the fabric, the control plane and the doors.
type node struct {
	cfg      nodeConfig
	store    *sqlstore.Store
	trust    trust
	restore  *enrol.Restore
	backups  *backup.Scheduler // nil: none are made by the server itself
	broker   *nats.Broker
	hub      *nats.Hub
	plane    *guardedPlane
	rollouts *waves.Runner
	accounts *auth.Accounts
	cmdb     *cmdb.Sync      // nil: businesses come from documents only
	points   *checkpoints    // nil: none are signed
	releases *upgrade.Runner // nil: no host is enrolled here
	listener net.Listener
	handler  http.Handler
	refused  func(rule string)
	stopping chan struct{} // closed when run ends
}

// newNode opens everything in the order of dependence; what was opened is closed when a later step fails.
func newNode(ctx context.Context, cfg nodeConfig) (_ *node, err error) {
	n := &node{cfg: cfg, stopping: make(chan struct{})}
	defer func() {
		if err != nil {
			n.close()
		}
	}()

	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}

	metrics := api.NewMetrics()
	n.refused = metrics.ReportRefused
	n.store, err = sqlstore.OpenSQLite(ctx, filepath.Join(cfg.Data, "gozzard.db"), sqlstore.Options{
		Log: cfg.Log, Fatal: fatal(cfg.Log), Observe: metrics.ObserveStore,
	})
	if err != nil {
		return nil, err
	}
	if err := n.openTrust(ctx, metrics.ReportRefused); err != nil {
		return nil, err
	}
	if n.restore, err = n.openRestore(ctx); err != nil {
		return nil, err
	}
	if n.backups, err = cfg.Backup.open(cfg, metrics); err != nil {
		return nil, err
	}

	n.broker, err = nats.StartBroker(n.brokerOptions(metrics.ReportRefused))
	if err != nil {
		return nil, err
	}
	if n.trust.desk != nil {
		n.trust.desk.OnCut(n.broker.Cut)
	}

	index := fleet.New()
	late := &lateDispatcher{observe: metrics.ObserveFabric}
	cfg.Guard.Refused = metrics.ReportRefused
	n.plane = &guardedPlane{guard: ratelimit.New(cfg.Guard.Options)}
	n.plane.Plane, err = control.New(ctx, control.Options{
		Store: n.store, Topology: n.store, Dispatch: late, Live: index, Log: cfg.Log, Interval: cfg.Interval,
		Keep: cfg.Keep, Quota: cfg.Guard.InFlight,
		HelloRate: offBelowZero(cfg.Guard.HelloRate),
		Observe: control.Observer{Accepted: metrics.TaskAccepted, Settled: metrics.AttemptSettled,
			Refused: metrics.ReportRefused, Update: n.updateAnswered,
			Downgraded: n.downgraded},
	})
	if err != nil {
		return nil, err
	}
	if err := n.openReleases(ctx); err != nil {
		return nil, err
	}

	n.hub, err = nats.NewHub(nats.HubOptions{Broker: n.broker, Receive: n.receive, Signer: cfg.Signer,
		Limits: cfg.Guard.agentLimits(), Refused: metrics.ReportRefused, Log: cfg.Log})
	if err != nil {
		return nil, err
	}

	late.hub = n.hub
	metrics.Watch(index, func() api.FabricCounts {
		c := n.hub.Stats()
		return api.FabricCounts{Sent: c.Sent, Results: c.Results, Statuses: c.Statuses, Dropped: c.Dropped,
			Malformed: c.Malformed, Newer: c.Newer, Flooded: c.Flooded}
	})

	if n.accounts, err = cfg.Login.openAccounts(ctx, n.store, metrics.ReportRefused); err != nil {
		return nil, err
	}

	n.rollouts = waves.New(waves.Options{Store: n.store, Plane: n.plane, Rights: n.accounts.Book().RightsOf,
		Log: cfg.Log})
	if n.cmdb, err = cfg.CMDB.open(n.plane.Plane, cfg.Log); err != nil {
		return nil, err
	}
	if n.points, err = newCheckpoints(&cfg, n.store); err != nil {
		return nil, err
	}
	if err := n.openDoors(metrics); err != nil {
		return nil, err
	}

	n.listener, err = listenAPI(cfg.Listen, n.trust.api)
	return n, err
}

// openDoors makes the APIs.
func (n *node) openDoors(metrics *api.Metrics) error {
	provider, err := n.cfg.Login.provider()
	if err != nil {
		return err
	}

	book := n.accounts.Book()
	log, observe := n.cfg.Log, metrics.ObserveRequest
	kit := gsekit.Options{Plane: n.plane, Jobs: n.rollouts, Auth: book, Log: log, Observe: observe}

	if n.cmdb != nil {
		kit.Flush = flusher(n.plane.Plane, n.cmdb)
	}

	n.handler = n.plane.guard.Handler(doors(
		api.New(api.Options{Plane: n.plane, Authenticate: blueking.ByHeaders(book),
			Challenge: blueking.AuthorizationHeader, Accounts: n.accounts, Provider: provider, Metrics: metrics,
			Ready: n.plane.Ready, Log: log, Enrol: n.trust.desk, Restore: n.restore,
			Audit: n.store, Flag: n.hub.Flag, Releases: n.releases, Stopping: n.stopping}),
		job.New(job.Options{Plane: n.plane, Auth: book, Log: log, Observe: observe}),
		gsekit.New(kit),
		gse.New(gse.Options{Plane: n.plane, Auth: book, Log: log, Observe: observe}),
	))
	return nil
}

// URL is where the API is served, as this machine reaches it.
func (n *node) URL() string {
	addr := n.listener.Addr().String()
	if host, port, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	if n.trust.api != nil {
		return "https://" + addr
	}
	return "http://" + addr
}

// run serves until ctx ends.
func (n *node) run(ctx context.Context) error {
	defer n.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	context.AfterFunc(ctx, func() { close(n.stopping) })

	parts := []func(context.Context) error{
		n.plane.Run, n.hub.Run, n.rollouts.Run,
		func(ctx context.Context) error {
			return serveHTTP(ctx, n.trust.wrap(n.plane.guard.Listener(n.listener)), n.handler, n.cfg.Log)
		},
	}

	if n.cmdb != nil && len(n.cfg.CMDB.businesses) > 0 { // with none it has nothing to do but to answer
		parts = append(parts, n.cmdb.Run)
	}
	if n.points != nil {
		parts = append(parts, n.points.Run)
	}
	if n.trust.desk != nil {
		parts = append(parts, n.trust.desk.Run, n.releases.Run)
	}
	if n.backups != nil {
		parts = append(parts, n.backups.Run)
	}

	errs := make([]error, len(parts))
	for i, run := range parts {
		wg.Go(func() { defer cancel(); errs[i] = run(ctx) })
	}

	wg.Wait()
	return errors.Join(errs...)
}

func (n *node) close() {
	if n.hub != nil {
		n.hub.Close()
	}
	if n.broker != nil {
		n.broker.Close()
	}
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			n.cfg.Log.Error("cannot close the record", "err", err)
		}
	}
}

// lateDispatcher breaks the circle between plane and hub: the hub is there before the plane runs.
type lateDispatcher struct {
	hub     *nats.Hub
	observe func(call string, took time.Duration)
}

// Send hands a command to the hub.
func (d *lateDispatcher) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	if d.hub == nil {
		return errors.New("the fabric is not up yet")
	}
	began := time.Now()
	defer func() { d.observe("send", time.Since(began)) }()
	return d.hub.Send(to, cloud, cmd)
}
