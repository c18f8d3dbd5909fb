//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
)

// runBareServer is a part: NATS alone, and one client that answers every message of an agent. The client connects inside
// the process, as our hub does. The address is written to the folder of the order.
func runBareServer(ctx context.Context, o order) error {
	profile.Serve(ctx, o.Profile, crowd.WriteHolding)
	so := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPending: 64 << 20}
	if o.TLS != nil {
		var err error
		if so.TLSConfig, err = o.TLS.Config(); err != nil {
			return err
		}
		so.TLSTimeout, so.TLSHandshakeFirst = crowd.Patience.Seconds(), true
	}
	s, err := server.NewServer(so)
	if err != nil {
		return fmt.Errorf("cannot set up NATS: %w", err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(crowd.Patience) {
		return errors.New("cannot start NATS")
	}

	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("cannot connect to NATS: %w", err)
	}
	defer conn.Close()
	if err := crowd.AnswerAll(conn, "", o.Size); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "address"), []byte(s.Addr().String()), 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func bareAgents(o order) crowd.BareAgents {
	return crowd.BareAgents{Server: o.Server, Dir: o.Dir, First: o.First, N: o.N, PerSecond: o.PerSecond, Size: o.Size, TLS: o.TLS}
}

// measureBare measures NATS alone with as many agents and messages.
func (b *bench) measureBare(ctx context.Context, way string, n int, perSecond float64) (c cost, err error) {
	dir, err := os.MkdirTemp(b.dir, "bare-")
	if err != nil {
		return c, err
	}
	o := order{Way: way, Dir: dir, Size: 120, Profile: b.profiles}
	if way == wayTLS {
		if o.TLS, err = crowd.NewKeyPair(); err != nil {
			return c, err
		}
	}

	// Start the server.
	var parts []*child.Process
	defer func() { crowd.StopAll(parts) }()
	s, err := b.startPart("bare-server", o)
	if err != nil {
		return c, err
	}
	parts = append(parts, s)
	err = child.Until(ctx, crowd.Patience, "bare NATS", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(dir, "address"))
		o.Server = string(text)
		return len(text) > 0, err
	}, s)
	if err != nil {
		return c, err
	}
	if c.empty, err = s.RSS(); err != nil {
		return c, err
	}

	// Start the agents.
	for o.First = 0; o.First < n; o.First += crowd.MaxHosts {
		o.N = min(crowd.MaxHosts, n-o.First)
		o.PerSecond = perSecond * float64(o.N) / float64(n)
		p, err := b.startPart("bare-agents", o)
		if err != nil {
			return c, err
		}
		parts = append(parts, p)
		err = child.Until(ctx, 5*time.Minute, "bare agents", func() (bool, error) {
			agents := bareAgents(o)
			_, err := os.Stat(agents.ReadyFile())
			return err == nil, err
		}, p, s)
		if err != nil {
			return c, err
		}
	}

	return c, b.profile(s, profileName("bare", way, n), func() error { return b.atRest(ctx, s, &c) })
}
