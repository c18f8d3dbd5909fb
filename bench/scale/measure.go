//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
)

// measured is what was measured.
type measured struct {
	room int // agents that the files of one server allow

	enrolled, joined time.Duration

	empty, full int64         // memory of all servers without agents, and with all of them at rest
	rest        spent         // in a second
	in, out     float64       // messages in a second at rest
	fan         fanned        // one operation on each host
	accept      acceptance    // of a task with many targets
	lists       []list        // at all processes
	expression  []list        // the same in a business
	applied     time.Duration // until every server answered for the business

	hostBytes, attemptBytes float64 // in the record, with indexes: for each host with its processes, and for each operation

	lost     int // hosts
	noticed  time.Duration
	killed   int           // agents at the kill
	orphans  int           // of them at the server that was killed
	back     time.Duration // until all have sessions at the others
	backRows time.Duration // until both others know that all processes run
	backCPU  spent         // until then

	bare bare
}

// spent is CPU.
type spent struct {
	servers, postgres, hosts time.Duration
}

// during measures the CPU of what f does.
func (b *bench) during(f func() error) (s spent, wall time.Duration, err error) {
	read := func() (s spent, err error) {
		if s.servers, err = crowd.SpentBy(b.serverParts()); err != nil {
			return s, err
		}
		if s.postgres, err = b.pg.cpu(); err != nil {
			return s, err
		}
		var parts []*child.Process
		for _, h := range b.hosts {
			parts = append(parts, h.Process)
		}
		s.hosts, err = crowd.SpentBy(parts)
		return s, err
	}

	before, err := read()
	if err != nil {
		return s, 0, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return s, 0, err
	}
	wall = time.Since(began)
	after, err := read()
	return spent{after.servers - before.servers, after.postgres - before.postgres, after.hosts - before.hosts}, wall, err
}

// per divides the CPU.
func (s spent) per(n float64) spent {
	div := func(d time.Duration) time.Duration { return time.Duration(float64(d) / n) }
	return spent{div(s.servers), div(s.postgres), div(s.hosts)}
}

// share of the simulated hosts in the CPU of all.
func (s spent) share() float64 {
	return float64(s.hosts) / float64(max(s.servers+s.postgres+s.hosts, 1))
}

func (b *bench) messages(ctx context.Context) (in, out float64, err error) {
	for _, s := range b.servers {
		i, o, err := s.Messages(ctx)
		if err != nil {
			return 0, 0, err
		}
		in, out = in+i, out+o
	}
	return in, out, nil
}

// measureRest measures the fleet at rest.
func (b *bench) measureRest(ctx context.Context) error {
	crowd.Sleep(ctx, b.settle)
	return around(b.servers, "rest", func() error {
		in, out, err := b.messages(ctx)
		if err != nil {
			return err
		}
		s, wall, err := b.during(func() error { crowd.Sleep(ctx, b.rest); return ctx.Err() })
		if err != nil {
			return err
		}
		b.m.rest = s.per(wall.Seconds())
		in2, out2, err := b.messages(ctx)
		if err != nil {
			return err
		}
		b.m.in, b.m.out = (in2-in)/wall.Seconds(), (out2-out)/wall.Seconds()
		b.m.full, err = b.rss()
		b.say("servers %s/s, PostgreSQL %s/s, hosts %s/s, %d MB, %.0f messages/s in, %.0f out", b.m.rest.servers, b.m.rest.postgres, b.m.rest.hosts,
			b.m.full>>20, b.m.in, b.m.out)
		return err
	})
}

// measureLoss freezes one process with simulated hosts: their connections stay, and nothing comes any more. It waits until
// every server lists them as offline.
func (b *bench) measureLoss(ctx context.Context) error {
	frozen := b.hosts[len(b.hosts)-1]
	left := (b.hostCount() - frozen.n) * b.processes
	if err := frozen.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range b.servers {
		err := child.Until(ctx, 3*time.Minute, "the loss of hosts", func() (bool, error) {
			n, err := s.Count(ctx, b.running())
			if err != nil || n <= left {
				return err == nil, err
			}
			time.Sleep(100 * time.Millisecond) // each look costs the server something
			return false, fmt.Errorf("server %d still shows %d processes as running, and %d can be", s.n, n, left)
		}, b.serverParts()...)
		if err != nil {
			return err
		}
	}
	b.m.lost, b.m.noticed = frozen.n, time.Since(began)
	b.say("the loss of %d hosts was known to all servers after %s", frozen.n, b.m.noticed.Round(100*time.Millisecond))

	// Let them come back.
	if err := frozen.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return b.awaitAll(ctx, b.servers, b.hostCount())
}

// measureKill kills one server. The others must have room for all agents; some are stopped before if they have not.
func (b *bench) measureKill(ctx context.Context) error {
	room := (servers - 1) * b.m.room
	for b.hostCount() > room {
		b.stopHosts(1)
	}
	if n := b.hostCount(); n < b.agents {
		b.res.Note("One server was killed with %d agents connected and not %d: the other %d servers may open %d files each, with some to spare.",
			n, b.agents, servers-1, b.m.room+spareFiles)
	}
	victim, others := b.servers[servers-1], b.servers[:servers-1]
	b.m.killed = b.hostCount()
	if err := b.awaitConnected(ctx, b.servers, b.m.killed); err != nil {
		return err
	}
	safe, err := connected(ctx, others)
	if err != nil {
		return err
	}
	b.m.orphans = b.m.killed - safe

	// Begin the profiles before it: the others are too busy afterwards.
	b.servers = others // nothing asks the dead one any more
	err = around(others, "return", func() error {
		victim.Kill()
		began := time.Now()
		b.m.backCPU, _, err = b.during(func() error {
			if err := b.awaitConnected(ctx, others, b.m.killed); err != nil {
				return err
			}
			b.m.back = time.Since(began)
			return b.awaitAll(ctx, others, b.m.killed)
		})
		b.m.backRows = time.Since(began)
		return err
	})
	b.say("all %d agents were back after %s, all rows after %s", b.m.killed, b.m.back.Round(100*time.Millisecond), b.m.backRows.Round(100*time.Millisecond))
	return err
}

// awaitConnected waits until all agents have sessions at some servers, and none too many.
func (b *bench) awaitConnected(ctx context.Context, list []*server, n int) error {
	return child.Until(ctx, 5*time.Minute, "sessions of all agents", func() (bool, error) {
		have, err := connected(ctx, list)
		if err != nil || have == n {
			return err == nil, err
		}
		time.Sleep(100 * time.Millisecond) // each look costs the server something
		return false, fmt.Errorf("%d of %d have sessions", have, n)
	}, b.living()...)
}

// middle is the median.
func middle(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
