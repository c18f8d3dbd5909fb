//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/fleet"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/topology"
)

// admin may see everything, like the first app of a server.
var admin = gozzard.Caller{App: "bench", User: "bench", Rights: gozzard.Everything()}

// server is the part of our server that answers: a control plane over SQLite and the live index. No host is connected
// to it. The benchmark puts states into the live index as reports do.
type server struct {
	plane *control.Plane
	live  *fleet.Index
	store *sqlstore.Store
}

// startServer makes a server. Its businesses are in the store, or in instead if that is given.
func startServer(ctx context.Context, dir string, l *fleet.Index, instead control.TopologyStore) (*server, error) {
	log := slog.New(slog.DiscardHandler)
	var failed error
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(dir, "gozzard.db"),
		sqlstore.Options{Log: log, Fatal: func(err error) { failed = err }})
	if err != nil {
		return nil, err
	}

	o := control.Options{Store: store, Topology: store, Dispatch: noAgents{}, Live: l, Log: log}

	if instead != nil {
		o.Topology = instead
	}

	plane, err := control.New(ctx, o)
	if err != nil {
		return nil, errors.Join(err, failed, store.Close())
	}

	return &server{plane: plane, live: l, store: store}, nil
}

// noAgents is where commands go: no agent is connected.
type noAgents struct{}

func (noAgents) Send(to gozzard.AgentID, _ int, _ *gozzard.Command) error {
	return fmt.Errorf("no host is connected, not even %s", to)
}

// report puts a host's processes into the live index, all of them in one state if one is given.
func (s *server) report(list []place, round uint64, all *gozzard.RunState) {
	host := list[0].service.Host
	rows := make([]gozzard.Status, 0, len(list))
	now := time.Now().Unix()
	for _, l := range list {
		state, hosted := statusOf(l.process.ID)
		if all != nil {
			state = *all
		}
		if state == gozzard.StateUnregistered {
			continue
		}
		st := gozzard.Status{Key: topology.Key(biz, l.process.Name, 1), Wanted: state, State: state, Hosted: hosted,
			PID: -1, RegisteredAt: now, ReportedAt: now}
		if state == gozzard.StateRunning {
			st.PID = int32(l.process.ID)
		}
		rows = append(rows, st)
	}

	s.live.Full(host.Agent, round, 0, 1, rows)
}

// join adds a host.
func (s *server) join(h topology.Host) {
	s.live.PutHost(fleet.Host{Info: gozzard.HostInfo{Agent: h.Agent, Addrs: []gozzard.HostAddr{h.Addr()}}, Session: 1,
		Online: true, LastSeen: time.Now()})
}

// memory keeps a business in memory, because the query does not measure SQL.
type memory struct{ business record.Business }

func (r *memory) Businesses(context.Context) ([]record.BusinessHead, error) {
	return []record.BusinessHead{r.business.BusinessHead}, nil
}

func (r *memory) Business(context.Context, int) (record.Business, error) {
	return r.business, nil
}

func (r *memory) SaveBusiness(context.Context, topology.Change, string, gozzard.AuditRow) (int64, error) {
	return 0, errors.New("this business is read-only")
}

func (r *memory) Services(context.Context, int, []int) ([]topology.ServiceInstance, error) {
	return nil, errors.New("this business is read-only")
}
