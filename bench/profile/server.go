//go:build linux

package profile

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/gozzard/gozzard/internal/server"
)

// Server is the server of a benchmark. Nothing but the machine limits what it accepts.
type Server struct {
	Data     string // folder
	Listen   string // address of the API
	Agents   string // address for agents
	Enrol    bool   // agents connect over TLS
	Profiles string // folder

	Record  string // address of a database; "": a file in the folder
	Cluster string // address for the other servers of the record; "": it is alone
}

// Args are the arguments with which the built program is this server. It writes no profiles.
func (s *Server) Args() []string {
	args := []string{"server", "--data", s.Data, "--listen", s.Listen, "--agent-listen", s.Agents, "--rate-app=0",
		"--max-connections=0", "--max-in-flight=0", "--confirm-above=0", "--confirm-above-percent=0", "--destructive-quota=0",
		"--max-connections-total=0", "--max-agent-connections=0"}
	if s.Enrol {
		args = append(args, "--enrol")
	}
	if s.Record != "" {
		args = append(args, "--record", s.Record)
	}
	if s.Cluster != "" {
		args = append(args, "--cluster-listen", s.Cluster)
	}
	return args
}

// Run runs the server inside this part, which writes profiles. more is that of Serve.
func (s *Server) Run(ctx context.Context, more func(path string) error) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	limits := server.DefaultLimits()
	limits.AppRate, limits.Connections, limits.TotalConnections = 0, 0, 0
	limits.InFlight, limits.AgentConnections = 0, 0
	limits.Blast.Targets, limits.Blast.Percent, limits.Blast.Quota = 0, 0, 0
	o := server.Options{Data: s.Data, Listen: s.Listen, AgentListen: s.Agents, Version: "bench", Interval: 30 * time.Second,
		Keep: 24 * time.Hour, Limits: limits, Log: log, Fatal: func(err error) { log.Error("cannot go on", "err", err); os.Exit(1) }}
	o.Trust.Enrol, o.Record, o.Cluster.Listen = s.Enrol, s.Record, s.Cluster
	Serve(ctx, s.Profiles, more)

	run, err := server.New(ctx, o)
	if err != nil {
		return err
	}
	return run.Run(ctx)
}
