//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
)

// cost is what a fleet costs its server.
type cost struct {
	empty, full int64         // memory without agents, and with all of them at rest
	cpu         time.Duration // in a second at rest
}

func (c *cost) perAgent(n int) float64 { return float64(c.full-c.empty) / float64(n) / 1024 }

// measure measures one fleet.
func (b *bench) measure(ctx context.Context, way string, n int) (err error) {
	b.say("%d agents, %s: preparing", n, way)
	s, err := b.prepare(ctx, way, n)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nthe log of the server ends with:\n%s", err, s.Tail())
		}
	}()
	m := measured{way: way, agents: n}

	// Let all agents join.
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { s.Stop() }()
	if m.ours.empty, err = s.RSS(); err != nil {
		return err
	}
	began := time.Now()
	agents, err := b.startAgents(s, n)
	if err != nil {
		return err
	}
	defer func() { crowd.StopAll(agents) }()
	if err := s.awaitStatus(ctx, n, agents...); err != nil {
		return err
	}
	m.joined = time.Since(began)
	b.say("%d agents, %s: all there after %s", n, way, m.joined.Round(100*time.Millisecond))

	// Measure them at rest.
	err = b.profile(s.Process, profileName("rest", way, n), func() error { return b.restOf(ctx, s, &m) })
	if err != nil {
		return err
	}
	b.say("%d agents, %s: %s/s at rest, %.1f KB each, %.0f messages/s in, %.0f out", n, way,
		m.ours.cpu.Round(100*time.Microsecond), m.ours.perAgent(n), m.in, m.out)

	// Operate on all.
	if err := b.fanOut(ctx, s, &m, agents); err != nil {
		return err
	}

	// Kill the server.
	if err := b.comeBack(ctx, s, &m, agents); err != nil {
		return err
	}
	crowd.StopAll(agents)
	agents = nil
	s.Stop()

	// Measure bare NATS.
	if m.bare, err = b.measureBare(ctx, way, n, m.in); err != nil {
		return fmt.Errorf("bare NATS: %w", err)
	}
	b.say("%d agents, %s: bare NATS %s/s at rest, %.1f KB each", n, way, m.bare.cpu.Round(100*time.Microsecond),
		m.bare.perAgent(n))
	return b.res.add(b, &m)
}

// comeBack measures how long all agents are away when the server is killed and started again.
func (b *bench) comeBack(ctx context.Context, s *testServer, m *measured, agents []*child.Process) error {
	before, err := crowd.SpentBy(agents)
	if err != nil {
		return err
	}
	s.Kill()
	began := time.Now()
	if err := s.start(ctx); err != nil {
		return err
	}
	m.serving = time.Since(began)

	err = b.profile(s.Process, profileName("return", m.way, m.agents), func() error { return s.awaitStatus(ctx, m.agents, agents...) })
	if err != nil {
		return err
	}
	m.back = time.Since(began)

	if m.backCPU, err = s.CPU(); err != nil {
		return err
	}
	after, err := crowd.SpentBy(agents)
	if err != nil {
		return err
	}
	m.backAgents = float64(after-before) / float64(after-before+m.backCPU)
	b.say("%s: back after %s (serving after %s), %s of CPU", m, m.back.Round(100*time.Millisecond),
		m.serving.Round(10*time.Millisecond), m.backCPU)
	return nil
}

// profile makes a server write profiles of what f does. The built program writes none.
func (b *bench) profile(p *child.Process, name string, f func() error) error {
	if b.binary != "" {
		return f()
	}
	return profile.Around(p, b.profiles, name, f)
}

// costsOf are the costs of one measurement. The built program writes no profiles.
func (b *bench) costsOf(what string, m *measured) (c profile.Costs, err error) {
	if b.binary != "" {
		return profile.Costs{}, nil
	}
	return profile.Read(filepath.Join(b.profiles, profileName(what, m.way, m.agents)+".cpu"))
}

// profileName is the name of the profiles of one measurement.
func profileName(what, way string, n int) string { return fmt.Sprintf("%s-%d-%s", way, n, what) }

// startAgents starts the simulated hosts, some in each process.
func (b *bench) startAgents(s *testServer, n int) (list []*child.Process, err error) {
	for first := 0; first < n; first += crowd.MaxHosts {
		p, err := b.startPart("agents", order{Way: s.way, Server: s.agents, API: s.Base, Data: s.data, Dir: b.agentsDir(s, first),
			Template: filepath.Join(b.shm, "template"), First: first, N: min(crowd.MaxHosts, n-first), Processes: b.processes})
		if err != nil {
			crowd.StopAll(list)
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// restOf measures our server at rest, and counts its messages meanwhile.
func (b *bench) restOf(ctx context.Context, s *testServer, m *measured) error {
	in, out, err := s.Messages(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.atRest(ctx, s.Process, &m.ours); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	in2, out2, err := s.Messages(ctx)
	m.in, m.out = (in2-in)/took, (out2-out)/took
	return err
}

// atRest lets a server settle and then measures it.
func (b *bench) atRest(ctx context.Context, p *child.Process, c *cost) error {
	crowd.Sleep(ctx, b.settle)
	cpu, wall, err := child.Spent(p, func() error { crowd.Sleep(ctx, b.rest); return ctx.Err() })
	if err != nil {
		return err
	}
	c.cpu = time.Duration(float64(cpu) / wall.Seconds())
	c.full, err = p.RSS()
	return err
}
