//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/internal/server"
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
	if s.bench.profiles != "" {
		s.Process, err = s.bench.startPart("server", order{Way: s.way, Data: s.data, Server: s.listen, Dir: s.agents,
			Profile: s.bench.profiles})
	} else {
		args := []string{"server", "--data", s.data, "--listen", s.listen, "--agent-listen", s.agents, "--rate-app=0",
			"--max-connections=0", "--max-in-flight=0", "--confirm-above=0", "--confirm-above-percent=0",
			"--destructive-quota=0", "--max-connections-total=0", "--max-agent-connections=0"}
		if s.way == wayTLS {
			args = append(args, "--enrol")
		}
		s.Process, err = child.Start(s.bench.dir, "server", exec.Command(s.bench.binary, args...))
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

// awaitStatus waits until the server knows the status of so many running processes, from their hosts.
func (s *testServer) awaitStatus(ctx context.Context, n int, needs ...*child.Process) error {
	return s.awaitCount(ctx, "/api/v1/processes?limit=1&state=running&namespace="+namespace, n, needs...)
}

// awaitCount waits until a list has so many rows.
func (s *testServer) awaitCount(ctx context.Context, list string, n int, needs ...*child.Process) error {
	return child.Until(ctx, 10*time.Minute, list, func() (bool, error) {
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

// profile makes the server write profiles of what f does: CPU while it runs and the heap after it.
func (s *testServer) profile(name string, f func() error) error {
	if s.bench.profiles == "" {
		return f()
	}
	mark := filepath.Join(s.bench.profiles, "next")
	if err := os.WriteFile(mark, []byte(name), 0o644); err != nil {
		return err
	}
	if err := s.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := s.Signal(syscall.SIGUSR2); err != nil {
		return err
	}
	heap := filepath.Join(s.bench.profiles, name+".heap")
	return child.Until(context.Background(), time.Minute, "the profiles", func() (bool, error) {
		_, err := os.Stat(heap)
		return err == nil, err
	}, s.Process)
}

// runServer is a part: the server of the program with profiles. SIGUSR1 begins a CPU profile under the name in the file
// "next", SIGUSR2 ends it and writes the heap.
func runServer(ctx context.Context, o order) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	limits := server.DefaultLimits()
	limits.AgentConnections, limits.Connections = 0, 0
	so := server.Options{Data: o.Data, Listen: o.Server, AgentListen: o.Dir, Version: "bench", Interval: 30 * time.Second,
		Keep: 24 * time.Hour, Limits: limits, Log: log, Fatal: func(err error) { log.Error("cannot go on", "err", err); os.Exit(1) }}
	so.Trust.Enrol = o.Way == wayTLS
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go writeProfiles(ctx, o.Profile, signals, log)

	s, err := server.New(ctx, so)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// writeProfiles writes profiles until ctx ends.
func writeProfiles(ctx context.Context, dir string, signals <-chan os.Signal, log *slog.Logger) {
	var cpu *os.File
	name := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			if sig == syscall.SIGUSR1 {
				cpu, name, err = beginProfile(dir)
			} else if cpu != nil {
				pprof.StopCPUProfile()
				runtime.GC()
				err = errors.Join(cpu.Close(), writeProfile(filepath.Join(dir, name+".goroutine"), "goroutine"),
					writeProfile(filepath.Join(dir, name+".heap"), "heap"))
			}
		}
		if err != nil {
			log.Error("cannot write a profile", "err", err)
		}
	}
}

func beginProfile(dir string) (*os.File, string, error) {
	name, err := os.ReadFile(filepath.Join(dir, "next"))
	if err != nil {
		return nil, "", err
	}
	f, err := os.Create(filepath.Join(dir, string(name)+".cpu"))
	if err != nil {
		return nil, "", err
	}
	return f, string(name), pprof.StartCPUProfile(f)
}

// writeProfile writes a profile under a name that appears when it is whole.
func writeProfile(path, kind string) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	err = errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
