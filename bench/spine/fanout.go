//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/sheet"
)

// measureFleet starts the large fleet and runs the measurements that need it.
func (b *bench) measureFleet(ctx context.Context) error {
	b.say("fleet: %d hosts join", b.size.hosts)
	f, err := b.startFleet(ctx, b.size.hosts, filepath.Join(b.shm, "fleet"))
	if err != nil {
		return err
	}

	defer f.stop()
	b.res.Note("Fleet of %d simulated hosts (the real agent and link over machines in memory), all in one process; all online %s after its start. Their "+
		"journals are on tmpfs: on one disk each operation would cost it two fsyncs of the agents', which in a fleet are spread over as many disks. The "+
		"server's record is on the disk.", b.size.hosts, span(f.joined))
	b.res.Note("Memory of the server: %s resident without hosts, %s when all have joined, %d KB a host (goal ≤ 45, with TLS).", megabytes(f.empty),
		megabytes(f.full), (f.full-f.empty)>>10/int64(b.size.hosts))

	if b.wants("fanout") {
		if err := b.measureFanOut(ctx, f); err != nil {
			return err
		}
	}

	switch {
	case b.wants("pages"):
		return b.measurePages(ctx, f)
	case b.wants("large"):
		b.size.names = min(b.size.names, mostNames+mostNames%registrars) // no more are needed
		if err := b.register(ctx, f); err != nil {
			return err
		}
		return b.measureLarge(ctx, f)
	}

	return nil
}

// fanOutTimes are the sums over the rounds of one side.
type fanOutTimes struct {
	accepted  samples
	whole     samples // until every verdict was durable and read
	cpu, wall time.Duration
	ops       int
}

// measureFanOut alternates whole operations and bare requests on the same number of hosts.
func (b *bench) measureFanOut(ctx context.Context, f *testFleet) error {
	down, up := messageSizes()
	bare, err := b.startBare(len(f.hosts), up)
	if err != nil {
		return err
	}

	defer bare.stop()
	body, err := request("fan", opReload, f.hosts)
	if err != nil {
		return err
	}
	if err := b.fanOutOurs(ctx, f, body, 1, &fanOutTimes{}); err != nil { // registers the process
		return err
	}

	plain := order{Do: "fanout", N: len(f.hosts), Rounds: b.size.rounds, Down: down}
	acked := plain
	acked.Ack = ackSize()

	if err := fanOutBare(bare, plain, &fanOutTimes{}); err != nil {
		return err
	}

	idle, idleWall, err := b.idle(ctx, f)
	if err != nil {
		return err
	}

	var ours, two, three fanOutTimes
	hosts, _, err := child.Spent(f.sim, func() error {
		for block := range b.size.blocks {
			b.say("fan-out: block %d of %d, %d rounds on %d hosts, then bare NATS", block+1, b.size.blocks,
				b.size.rounds, len(f.hosts))
			if err := b.fanOutOurs(ctx, f, body, b.size.rounds, &ours); err != nil {
				return err
			}
			if err := fanOutBare(bare, plain, &two); err != nil {
				return err
			}
			if err := fanOutBare(bare, acked, &three); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	t := b.tellFanOut(len(f.hosts), &ours, &two, &three)
	t.Add("CPU of all simulated hosts per operation, heartbeats included", each(hosts, ours.ops), "", "", "")
	t.Add("server CPU while idle, per second", span(time.Duration(float64(idle)/idleWall.Seconds())), "", "", "")
	b.res.Note("Bare NATS: an embedded server and the sender of requests in one process, connected inside it as our hub is; a connection for each agent, all "+
		"in another process; %d bytes down and %d up, the sizes of our command with one operation and of our result. It checks, records and answers nothing.", down, up)
	return nil
}

func (b *bench) tellFanOut(hosts int, ours, two, three *fanOutTimes) *sheet.Table {
	t := b.res.Table(fmt.Sprintf("One task on %d hosts, %d rounds", hosts, len(ours.whole)), "whole path, durable",
		"bare NATS, nothing durable")
	t.Add("all verdicts durable and read (bare: all replies back), p50 / p99", ours.whole.quantiles(),
		two.whole.quantiles(),
		ratio(ours.whole.at(0.5), two.whole.at(0.5)), "")
	t.Add("of it until the task was accepted, p50 / p99", ours.accepted.quantiles(), "", "", "")
	t.Add("operations a second", perSecond(ours.ops, ours.wall), perSecond(two.ops, two.wall),
		ratio(two.wall, ours.wall), "")
	t.Add("server CPU per operation", each(ours.cpu, ours.ops), each(two.cpu, two.ops), ratio(ours.cpu, two.cpu), "")
	t.Add("server CPU per operation; bare: with an acknowledgement to the agent, as ours has",
		each(ours.cpu, ours.ops), each(three.cpu, three.ops),
		ratio(ours.cpu, three.cpu), fmt.Sprintf("≤ %.1f×", goalFanOut))
	b.missFanOut(float64(ours.cpu) / max(float64(three.cpu), 1))
	return t
}

// idle measures the server while no caller uses it.
func (b *bench) idle(ctx context.Context, f *testFleet) (cpu, wall time.Duration, err error) {
	quiet := 5 * time.Second
	if b.size.name != "full" {
		quiet = 200 * time.Millisecond
	}
	return child.Spent(f.server, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quiet):
			return nil
		}
	})
}

func (b *bench) fanOutOurs(ctx context.Context, f *testFleet, body []byte, rounds int, t *fanOutTimes) error {
	cpu, wall, err := b.spent(f.server, "fanout", func() error {
		for range rounds {
			accepted, settled, n, err := f.operate(ctx, body)
			if err != nil {
				return err
			}
			if n.Done != len(f.hosts) || n.Targets != len(f.hosts) {
				b.res.AddFault("fan-out: of %d targets %d done, %d failed, %d never ended", n.Targets, n.Done,
					n.Failed, n.Running)
			}
			t.accepted, t.whole = append(t.accepted, accepted), append(t.whole, accepted+settled)
		}
		return nil
	})

	t.cpu += cpu
	t.wall += wall
	t.ops += rounds * len(f.hosts)
	return err
}

func fanOutBare(bare *bareFleet, o order, t *fanOutTimes) error {
	cpu, _, err := child.Spent(bare.server.Process, func() error {
		w, err := bare.server.do(o)
		for _, d := range w.Took {
			t.whole = append(t.whole, d)
			t.wall += d
		}
		return err
	})
	t.cpu += cpu
	t.ops += o.Rounds * o.N
	return err
}
