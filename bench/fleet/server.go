//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/sim"
)

// testServer is a running server.
type testServer struct {
	*child.Process
	bench  *bench
	way    string
	data   string
	listen string // of the API
	agents string // address for agents

	*crowd.Caller // since it has started
}

// newServer chooses the addresses of a server; start starts it.
func (b *bench) newServer(way string) (*testServer, error) {
	data, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	s := &testServer{bench: b, way: way, data: data}
	for _, addr := range []*string{&s.listen, &s.agents} {
		if *addr, err = crowd.FreeAddr(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// start starts the server and waits until it answers.
func (s *testServer) start(ctx context.Context) (err error) {
	if s.bench.binary == "" {
		s.Process, err = s.bench.startPart("server", order{Way: s.way, Data: s.data, Server: s.listen, Dir: s.agents,
			Profile: s.bench.profiles})
	} else {
		o := profile.Server{Data: s.data, Listen: s.listen, Agents: s.agents, Enrol: s.way == wayTLS}
		s.Process, err = child.Start(s.bench.dir, "server", exec.Command(s.bench.binary, o.Args()...))
	}
	if err != nil {
		return err
	}

	return child.Until(ctx, 2*time.Minute, "the server", func() (bool, error) {
		if s.Caller, err = crowd.ReadCaller(filepath.Join(s.data, "credentials.json"), ""); err != nil {
			return false, err
		}
		_, err := s.Call(ctx, http.MethodGet, "/readyz", nil)
		return err == nil, err
	}, s.Process)
}

// awaitStatus waits until the server knows from so many hosts that all of their processes run.
func (s *testServer) awaitStatus(ctx context.Context, hosts int, needs ...*child.Process) error {
	err := s.awaitCount(ctx, "/api/v1/processes?limit=1&state=running&namespace="+namespace, hosts*s.bench.processes, needs...)
	if err != nil {
		return fmt.Errorf("%w; hosts that are not online, at most 10: %q", err, s.missing(ctx, hosts))
	}
	return nil
}

// missing names hosts that are not online, for a run that failed.
func (s *testServer) missing(ctx context.Context, n int) (names []gozzard.AgentID) {
	online := map[gozzard.AgentID]bool{}
	for start := 0; start < n; start += client.MaxPage {
		var page client.HostPage
		if err := s.Get(ctx, fmt.Sprintf("/api/v1/hosts?start=%d&limit=%d", start, client.MaxPage), &page); err != nil {
			return nil // the run has failed for another reason
		}
		for _, h := range page.Hosts {
			online[h.Agent] = h.Online
		}
	}

	for i := 0; i < n && len(names) < 10; i++ {
		if id := sim.AgentID(i); !online[id] {
			names = append(names, id)
		}
	}
	return names
}

// awaitCount waits until a list has so many rows.
func (s *testServer) awaitCount(ctx context.Context, list string, n int, needs ...*child.Process) error {
	return s.AwaitCount(ctx, 4*time.Minute, list, n, append(needs, s.Process)...)
}

// runServer is a part: the server of the program, which also writes profiles.
func runServer(ctx context.Context, o order) error {
	s := profile.Server{Data: o.Data, Listen: o.Server, Agents: o.Dir, Enrol: o.Way == wayTLS, Profiles: o.Profile}
	return s.Run(ctx, crowd.WriteHolding)
}
