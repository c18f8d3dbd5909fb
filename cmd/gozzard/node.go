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

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/gse"
	"github.com/gozzard/gozzard/internal/live"
	"github.com/gozzard/gozzard/internal/nats"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// nodeConfig is what a server needs to know.
type nodeConfig struct {
	Data        string
	Listen      string
	AgentListen string // "": agents in this process only
	JoinSecret  string
	Auth        auth.Config
	Interval    time.Duration
	Keep        time.Duration
	Log         *slog.Logger
}

// node is a running server: the record, the fabric, the control plane and the doors.
type node struct {
	cfg      nodeConfig
	store    *sqlstore.Store
	broker   *nats.Broker
	hub      *nats.Hub
	plane    *control.Plane
	listener net.Listener
	handler  http.Handler
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
	n.store, err = sqlstore.OpenSQLite(ctx, filepath.Join(cfg.Data, "gozzard.db"), sqlstore.Options{
		Log: cfg.Log, Fatal: fatal(cfg.Log), Observe: metrics.ObserveStore,
	})
	if err != nil {
		return nil, err
	}
	n.broker, err = nats.StartBroker(nats.BrokerOptions{Listen: cfg.AgentListen, Secret: cfg.JoinSecret, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	index := live.New()
	late := &lateDispatcher{observe: metrics.ObserveFabric}
	n.plane, err = control.New(ctx, control.Options{
		Store: n.store, Dispatch: late, Live: index, Log: cfg.Log, Interval: cfg.Interval, Keep: cfg.Keep,
		Observe: control.Observer{Accepted: metrics.TaskAccepted, Settled: metrics.AttemptSettled, Refused: metrics.ReportRefused},
	})
	if err != nil {
		return nil, err
	}
	n.hub, err = nats.NewHub(nats.HubOptions{Broker: n.broker, Receive: n.plane.Receive, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	late.hub = n.hub
	book, err := auth.New(cfg.Auth)
	if err != nil {
		return nil, err
	}
	metrics.Watch(index, func() api.FabricCounts {
		c := n.hub.Stats()
		return api.FabricCounts{Sent: c.Sent, Results: c.Results, Statuses: c.Statuses, Dropped: c.Dropped, Malformed: c.Malformed, Newer: c.Newer}
	})
	n.handler = doors(
		api.New(api.Options{Plane: n.plane, Auth: book, Metrics: metrics, Ready: n.plane.Ready, Log: cfg.Log, Stopping: n.stopping}),
		gse.New(gse.Options{Plane: n.plane, Auth: book, Log: cfg.Log, Observe: metrics.ObserveRequest}),
	)
	n.listener, err = listenLoopback(cfg.Listen)
	return n, err
}

// URL is where the API is served.
func (n *node) URL() string { return "http://" + n.listener.Addr().String() }

// run serves until ctx ends.
func (n *node) run(ctx context.Context) error {
	defer n.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 3)
	context.AfterFunc(ctx, func() { close(n.stopping) })
	wg.Go(func() { defer cancel(); errs[0] = n.plane.Run(ctx) })
	wg.Go(func() { defer cancel(); errs[1] = n.hub.Run(ctx) })
	wg.Go(func() { defer cancel(); errs[2] = serveHTTP(ctx, n.listener, n.handler, n.cfg.Log) })
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
