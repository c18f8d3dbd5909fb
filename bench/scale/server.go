//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
	"github.com/gozzard/gozzard/client"
	gozzardserver "github.com/gozzard/gozzard/internal/server"
)

// server is one of the servers.
type server struct {
	*child.Process
	*crowd.Caller
	b *bench
	n int // from 1

	o profile.Server
}

// makeServers makes the installation: the others get the keys of the first one as an admin would give them.
func (b *bench) makeServers(ctx context.Context) error {
	for n := 1; n <= servers; n++ {
		name := fmt.Sprint("server", n)
		s := &server{b: b, n: n, o: profile.Server{Data: filepath.Join(b.dir, name), Enrol: true, Record: b.pg.URL(database),
			Profiles: filepath.Join(b.profiles, name)}}
		if err := os.MkdirAll(s.o.Profiles, 0o755); err != nil {
			return fmt.Errorf("cannot make the folder of the profiles: %w", err)
		}
		for _, addr := range []*string{&s.o.Listen, &s.o.Agents, &s.o.Cluster} {
			var err error
			if *addr, err = crowd.FreeAddr(); err != nil {
				return err
			}
		}
		if n > 1 {
			if err := s.getKeys(ctx, b.servers[0]); err != nil {
				return err
			}
		}
		b.servers, b.all = append(b.servers, s), append(b.all, s)
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// getKeys makes the data folder of one more server.
func (s *server) getKeys(ctx context.Context, from *server) error {
	text, err := from.Call(ctx, http.MethodPost, "/api/v1/servers/token", client.ServerTokenRequest{})
	if err != nil {
		return err
	}
	var made client.ServerToken
	if err := json.Unmarshal(text, &made); err != nil {
		return err
	}
	file := s.o.Data + ".token"
	if err := os.WriteFile(file, []byte(made.Token), 0o600); err != nil {
		return err
	}
	_, err = gozzardserver.Join(ctx, gozzardserver.JoinOptions{Data: s.o.Data, Server: from.Base, TokenFile: file})
	return err
}

// start starts the server and waits until it answers.
func (s *server) start(ctx context.Context) (err error) {
	if s.Process, err = crowd.StartPart(s.b.dir, "server", s.o); err != nil {
		return err
	}
	credentials := filepath.Join(s.b.servers[0].o.Data, "credentials.json")
	return child.Until(ctx, 5*time.Minute, fmt.Sprint("server ", s.n), func() (bool, error) {
		if s.Caller, err = crowd.ReadCaller(credentials, "https://"+s.o.Listen); err != nil {
			return false, err
		}
		_, err := s.Call(ctx, http.MethodGet, "/readyz", nil)
		return err == nil, err
	}, s.Process)
}

// startServers starts all servers.
func (b *bench) startServers(ctx context.Context) error {
	for _, s := range b.servers {
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stopServers() {
	for _, s := range b.servers {
		if s.Process != nil {
			s.Stop()
		}
	}
}

// agentAddrs are the addresses for agents of all servers.
func (b *bench) agentAddrs() string {
	var list []string
	for _, s := range b.servers {
		list = append(list, s.o.Agents)
	}
	return strings.Join(list, ",")
}

// processes of our servers.
func (b *bench) serverParts() (list []*child.Process) {
	for _, s := range b.servers {
		list = append(list, s.Process)
	}
	return list
}

// rss is the memory of all servers.
func (b *bench) rss() (all int64, err error) {
	for _, s := range b.servers {
		n, err := s.RSS()
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// around makes servers write profiles of what f does.
func around(list []*server, name string, f func() error) error {
	if len(list) == 0 {
		return f()
	}
	return profile.Around(list[0].Process, list[0].o.Profiles, name, func() error { return around(list[1:], name, f) })
}

// running is the list of processes that run, on hosts that are online.
func (b *bench) running() string {
	return "/api/v1/processes?limit=1&state=running&namespace=" + b.namespace()
}

// awaitAll waits until servers know that all processes of so many hosts run.
func (b *bench) awaitAll(ctx context.Context, list []*server, hosts int) error {
	for _, s := range list {
		if err := s.AwaitCount(ctx, 10*time.Minute, b.running(), hosts*b.processes, b.living()...); err != nil {
			return fmt.Errorf("server %d: %w", s.n, err)
		}
	}
	return nil
}

// living are the parts that run now.
func (b *bench) living() (list []*child.Process) {
	for _, p := range b.needs() {
		if p.Alive() == nil {
			list = append(list, p)
		}
	}
	return list
}

// connected is how many agents have their sessions at some servers, as these record it every three seconds.
func connected(ctx context.Context, list []*server) (n int, err error) {
	var all client.ServerList
	if err := list[0].Get(ctx, "/api/v1/servers", &all); err != nil {
		return 0, err
	}
	for _, row := range all.Servers {
		for _, s := range list {
			if strings.TrimSuffix(row.URL, "/") == s.Base {
				n += row.Agents
			}
		}
	}
	return n, nil
}
