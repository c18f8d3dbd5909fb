//go:build linux

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/sim"
)

// agentsDir is the folder of the agents of one process.
func (b *bench) agentsDir(s *testServer, first int) string {
	return filepath.Join(b.shm, filepath.Base(s.data), strconv.Itoa(first))
}

// prepare makes a server and the state of a fleet: the processes are registered and started on the first host through
// the API. The other hosts get copies of its journal and of its rows in the record, because registering them one by one
// would take longer than everything else.
func (b *bench) prepare(ctx context.Context, way string, n int) (_ *testServer, err error) {
	s, err := b.newServer(way)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer func() { s.Stop() }()

	// Enrol all hosts.
	if way == wayTLS {
		if err := b.enrolAll(ctx, s, n); err != nil {
			return nil, err
		}
	}

	// Register and start the processes of the first host.
	first, err := b.startPart("agents", order{Way: way, Server: s.agents, API: s.Base, Data: s.data, Dir: b.agentsDir(s, 0), N: 1})
	if err != nil {
		return nil, err
	}
	defer first.Stop()
	if err := s.RegisterAll(ctx, procKeys(b.processes), first); err != nil {
		return nil, err
	}
	if err := s.awaitStatus(ctx, 1, first); err != nil {
		return nil, err
	}
	first.Stop()
	dir := filepath.Join(b.agentsDir(s, 0), string(sim.AgentID(0)))
	if err := crowd.Template(dir, filepath.Join(b.shm, "template")); err != nil {
		return nil, err
	}

	// Copy what the record has of it.
	s.Stop()
	return s, copyRecord(ctx, filepath.Join(s.data, backup.RecordFile), n)
}

// enrolAll enrols the hosts.
func (b *bench) enrolAll(ctx context.Context, s *testServer, n int) error {
	b.say("%d hosts enrol", n)
	file := filepath.Join(b.dir, "token")
	if err := s.Token(ctx, n, file); err != nil {
		return err
	}
	for first := 0; first < n; first += crowd.MaxHosts {
		err := sim.Enrol(ctx, sim.FleetOptions{Hosts: min(crowd.MaxHosts, n-first), First: first, API: s.Base, TokenFile: file,
			Dir: b.agentsDir(s, first)})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRecord gives the other hosts the registered processes of the first one. The server does not run.
func copyRecord(ctx context.Context, path string, n int) error {
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{Log: slog.New(slog.DiscardHandler), Fatal: func(error) {}})
	if err != nil {
		return err
	}
	defer store.Close()

	return crowd.CopyProcesses(ctx, store, n)
}
