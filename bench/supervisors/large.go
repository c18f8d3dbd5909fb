//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	maxPlaces = 20_000 // supervised processes of one site; PLACES of child.c
	atOneCall = 1000   // operations of one call, where there are more processes
)

// large measures the agent alone with more processes than peers can have: its memory and its descriptors. The limit of
// descriptors is that of this program.
func (b *bench) large(ctx context.Context, n int) (err error) {
	return b.largeSite(ctx, n, false, func(s *site, p *gozzardPeer) error {
		if err := pause(ctx, b.size.settle+b.size.idle/2); err != nil {
			return err
		}
		list, err := s.own(p)
		if err != nil {
			return err
		}
		before, began := cpuOf(list), time.Now()
		if err := pause(ctx, b.size.idle); err != nil {
			return err
		}

		cpu := perMinute(cpuOf(list)-before, time.Since(began))
		open, err := os.ReadDir(procPath(p.main(), "fd"))
		if err != nil {
			return fmt.Errorf("cannot count descriptors: %w", err)
		}
		took := float64(s.found[rowStartCall].value) / 1000
		b.res.addLarge(fmt.Sprintf("| %d | %.1f | %.0f | %d | %.1f |", n, float64(pssOf(list))/(1<<20), cpu, len(open), took))
		return nil
	})
}

// largeSite starts n processes with several calls, measures the agent and removes everything again.
func (b *bench) largeSite(ctx context.Context, n int, profiled bool, measure func(*site, *gozzardPeer) error) (err error) {
	s, err := newSite(b.dir, candidates()[0].name, n, how{}, b.tools)
	if err != nil {
		return err
	}
	s.found, s.patience = figures{}, 4*b.size.patience
	p := &gozzardPeer{site: s, profiled: profiled}
	defer func() { err = errors.Join(err, b.remove(s, p)) }()

	began := time.Now()
	if err := p.startLarge(ctx); err != nil {
		return err
	}
	s.found[rowStartCall] = millis(time.Since(began))
	return measure(s, p)
}

// startLarge starts server and agent, and the processes with several calls.
func (p *gozzardPeer) startLarge(ctx context.Context) error {
	p.connect()
	for _, step := range []func(context.Context) error{p.startServer, p.start, p.online, p.probeFront} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	p.track.forget() // the probe
	items := p.items()
	for from := 0; from < len(items); from += atOneCall {
		good, err := p.settled(ctx, opStart, items[from:min(from+atOneCall, len(items))])
		if err != nil || !good {
			return fmt.Errorf("not all processes were started: good %v: %w: %s", good, err, p.proc.words())
		}
	}
	ok, err := p.track.awaitAll(ctx, p.patience, nil)
	if err == nil && !ok {
		err = fmt.Errorf("not all processes run: %s", p.proc.words())
	}
	return err
}
