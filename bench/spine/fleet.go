//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/test/sim"
)

// testFleet is a server with simulated hosts.
type testFleet struct {
	*caller
	server, sim *child.Process
	hosts       []host
	joined      time.Duration // from the start of the hosts until all were online
	empty, full int64         // memory of the server before and after
}

// host names a host as callers do.
type host struct {
	IP    string `json:"ip"`
	Cloud int    `json:"bk_cloud_id"`
}

// startFleet starts a server with its database on the disk, and hosts that keep their state in a folder. It waits until
// all hosts are online.
func (b *bench) startFleet(ctx context.Context, hosts int, state string) (_ *testFleet, err error) {
	data, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}

	port, err := freePort()
	if err != nil {
		return nil, err
	}

	agents := "127.0.0.1:" + strconv.Itoa(port)
	f := &testFleet{}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()

	f.server, err = b.startServer(data, agents)
	if err != nil {
		return nil, err
	}

	b.server = append(b.server, f.server.Log)

	if err := f.connect(ctx, filepath.Join(data, "credentials.json")); err != nil {
		return nil, err
	}
	if f.empty, err = f.server.RSS(); err != nil {
		return nil, err
	}

	began := time.Now()
	f.sim, err = child.Start(b.dir, "sim", exec.Command(b.binary, "sim", "--hosts", strconv.Itoa(hosts), "--server", agents,
		"--secret-file", filepath.Join(data, "join.secret"), "--data", state))
	if err != nil {
		return nil, err
	}

	for i := range hosts {
		f.hosts = append(f.hosts, host{IP: sim.Addr(0, i).IP.String()})
	}

	if err := f.awaitHosts(ctx); err != nil {
		return nil, err
	}

	f.joined = time.Since(began)
	f.full, err = f.server.RSS()
	return f, err
}

func (f *testFleet) stop() {
	for _, p := range []*child.Process{f.sim, f.server} {
		if p != nil {
			p.Stop()
		}
	}
}

func (f *testFleet) connect(ctx context.Context, path string) error {
	return child.Until(ctx, time.Minute, "the server", func() (bool, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		if f.caller, err = newCaller(text); err != nil {
			return false, err
		}
		_, err = f.get(ctx, "/readyz")
		return err == nil, err
	}, f.server)
}

// awaitHosts waits until every host is online.
func (f *testFleet) awaitHosts(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"hosts": f.hosts})
	if err != nil {
		return err
	}

	return child.Until(ctx, 3*time.Minute, "every host", func() (bool, error) {
		var states map[string]struct {
			Alive int `json:"bk_agent_alive"`
		}
		if _, err := f.ask(ctx, "get_agent_status", body, &states); err != nil {
			return false, err
		}
		online := 0
		for _, s := range states {
			online += s.Alive
		}
		return online == len(f.hosts), fmt.Errorf("%d of %d are online", online, len(f.hosts))
	}, f.server, f.sim)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
