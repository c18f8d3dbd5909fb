//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/profile"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/server"
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

	http *http.Client
	auth string // header of the first app
	base string // URL of the API
}

// newServer chooses the addresses of a server; start starts it.
func (b *bench) newServer(way string) (*testServer, error) {
	data, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	s := &testServer{bench: b, way: way, data: data}
	for _, addr := range []*string{&s.listen, &s.agents} {
		if *addr, err = freeAddr(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
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
		if err := s.readCredentials(); err != nil {
			return false, err
		}
		_, err := s.call(ctx, http.MethodGet, "/readyz", nil)
		return err == nil, err
	}, s.Process)
}

func (s *testServer) readCredentials() error {
	text, err := os.ReadFile(filepath.Join(s.data, "credentials.json"))
	if err != nil {
		return err
	}
	var c server.Credentials
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.CA))
	s.http = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64,
		TLSClientConfig: &tls.Config{RootCAs: roots}}}
	s.base, c.URL, c.CA = c.URL, "", ""
	auth, err := json.Marshal(c)
	s.auth = string(auth)
	return err
}

// call sends a request as the first app of the server.
func (s *testServer) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Bkapi-Authorization", s.auth)
	r.Header.Set("Content-Type", "application/json")

	answer, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: HTTP %d %.300s", path, answer.StatusCode, text)
	}
	return text, err
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
		text, err := s.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/hosts?start=%d&limit=%d", start, client.MaxPage), nil)
		var page client.HostPage
		if err != nil || json.Unmarshal(text, &page) != nil {
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
	return child.Until(ctx, 4*time.Minute, list, func() (bool, error) {
		text, err := s.call(ctx, http.MethodGet, list, nil)
		if err != nil {
			return false, err
		}
		var page struct{ Count int }
		if err := json.Unmarshal(text, &page); err != nil {
			return false, err
		}
		if page.Count >= n {
			return true, nil
		}
		time.Sleep(200 * time.Millisecond) // each look costs the server something
		return false, fmt.Errorf("%d of %d are known", page.Count, n)
	}, append(needs, s.Process)...)
}

// runServer is a part: the server of the program, which also writes profiles.
func runServer(ctx context.Context, o order) error {
	s := profile.Server{Data: o.Data, Listen: o.Server, Agents: o.Dir, Enrol: o.Way == wayTLS, Profiles: o.Profile}
	return s.Run(ctx, writeHolding)
}
