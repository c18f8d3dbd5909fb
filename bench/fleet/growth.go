//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/sheet"
	"github.com/gozzard/gozzard/internal/backup"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/test/sim"
)

// growthSize says at which sizes the growth of the cost is measured.
type growthSize struct {
	hosts     int
	processes []int // on each host
	names     []int // of processes, in one task on all hosts
	history   []int // attempts of earlier tasks in the record
	rounds    int   // tasks for a figure
}

func fullGrowth() growthSize {
	return growthSize{hosts: 1000, processes: []int{5, 20, 80}, names: []int{1, 5, 20}, history: []int{0, 100_000, 1_000_000}, rounds: 10}
}

func quickGrowth() growthSize {
	return growthSize{hosts: 20, processes: []int{1, 2}, names: []int{1, 2}, history: []int{0, 1000}, rounds: 2}
}

// growth measures how the cost of a server grows with processes, with targets and with history. How it grows with hosts is
// what the other run measures.
func (b *bench) growth(ctx context.Context, g growthSize) error {
	t := b.res.Table(fmt.Sprintf("Processes on each of %d hosts, plain", g.hosts), "server CPU at rest", "resident memory")
	for _, n := range g.processes {
		b.processes = n
		if err := b.growProcesses(ctx, g.hosts, t); err != nil {
			return fmt.Errorf("%d processes on each host: %w", n, err)
		}
	}

	b.processes = g.names[len(g.names)-1]
	return b.withFleet(ctx, g.hosts, func(s *testServer, agents []*child.Process) error {
		t := b.res.Table(fmt.Sprintf("Targets of one task on %d hosts, median of %d", g.hosts, g.rounds), "all verdicts read", "server CPU per operation")
		for _, n := range g.names {
			if err := b.growTargets(ctx, s, g, n, fmt.Sprintf("%d targets", n*g.hosts), t); err != nil {
				return err
			}
		}

		t = b.res.Table(fmt.Sprintf("Attempts of earlier tasks in the record; a task with %d targets, median of %d", g.hosts, g.rounds),
			"all verdicts read", "server CPU per operation")
		at := b.res.Table("Attempts of earlier tasks in the record; start of the server", "until it answers", "resident memory without agents")
		have := 0
		for _, n := range g.history {
			if err := b.growHistory(ctx, s, agents, n-have, g.hosts, at, n); err != nil {
				return err
			}
			have = n
			if err := b.growTargets(ctx, s, g, 1, fmt.Sprintf("%d attempts", n), t); err != nil {
				return err
			}
		}
		return nil
	})
}

// withFleet runs f with a fleet that has joined.
func (b *bench) withFleet(ctx context.Context, n int, f func(*testServer, []*child.Process) error) error {
	s, err := b.prepare(ctx, wayPlain, n)
	if err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { s.Stop() }()

	agents, err := b.startAgents(s, n)
	if err != nil {
		return err
	}
	defer func() { crowd.StopAll(agents) }()
	if err := s.awaitStatus(ctx, n, agents...); err != nil {
		return err
	}
	return f(s, agents)
}

func (b *bench) growProcesses(ctx context.Context, hosts int, t *sheet.Table) error {
	return b.withFleet(ctx, hosts, func(s *testServer, _ []*child.Process) error {
		var c cost
		if err := b.atRest(ctx, s.Process, &c); err != nil {
			return err
		}
		b.say("%d processes on each host: %s/s at rest", b.processes, c.cpu)
		t.Add(fmt.Sprintf("%d processes, %d in all", b.processes, b.processes*hosts), fmt.Sprintf("%.1f ms/s", c.cpu.Seconds()*1000),
			fmt.Sprintf("%.0f MB", float64(c.full)/(1<<20)), "", "")
		return nil
	})
}

// growTargets measures tasks on some processes of all hosts.
func (b *bench) growTargets(ctx context.Context, s *testServer, g growthSize, names int, title string, t *sheet.Table) error {
	var took []time.Duration
	cpu, _, err := child.Spent(s.Process, func() error {
		for range g.rounds {
			began := time.Now()
			if _, err := s.reloadAll(ctx, names, g.hosts); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		return nil
	})
	if err != nil {
		return err
	}

	slices.Sort(took)
	median := took[len(took)/2]
	each := cpu / time.Duration(g.rounds*names*g.hosts)
	b.say("%s: %s, %s of CPU per operation", title, median.Round(time.Millisecond), each)
	t.Add(title, fmt.Sprintf("%d ms", median.Milliseconds()), fmt.Sprintf("%.0f µs", float64(each)/float64(time.Microsecond)), "", "")
	return nil
}

// reloadAll reloads some processes on all hosts with one task and waits for all verdicts. accepted is the time until the
// task was accepted.
func (s *testServer) reloadAll(ctx context.Context, names, hosts int) (accepted time.Duration, err error) {
	task, accepted, err := s.Reload(ctx, procKeys(names), hosts)
	if err != nil {
		return 0, err
	}
	return accepted, s.AwaitTask(ctx, task, names*hosts)
}

// growHistory stops the server, adds earlier tasks to its record, and starts it again.
func (b *bench) growHistory(ctx context.Context, s *testServer, agents []*child.Process, n, hosts int, t *sheet.Table, all int) error {
	s.Stop()
	if err := addHistory(ctx, filepath.Join(s.data, backup.RecordFile), n); err != nil {
		return err
	}
	began := time.Now()
	if err := s.start(ctx); err != nil {
		return err
	}
	serving := time.Since(began)
	rss, err := s.RSS()
	if err != nil {
		return err
	}
	t.Add(fmt.Sprintf("%d attempts", all), fmt.Sprintf("%d ms", serving.Milliseconds()), fmt.Sprintf("%.0f MB", float64(rss)/(1<<20)), "", "")
	return s.awaitStatus(ctx, hosts, agents...)
}

// addHistory records tasks with 1,000 attempts each that ended.
func addHistory(ctx context.Context, path string, attempts int) (err error) {
	store, err := sqlstore.OpenSQLite(ctx, path, sqlstore.Options{Log: slog.New(slog.DiscardHandler), Fatal: func(error) {}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	for ; attempts > 0; attempts -= 1000 {
		caller := gozzard.Caller{App: "bench", User: "bench"}
		t := record.NewTask{Task: gozzard.Task{At: time.Now(), Caller: caller, Door: "gse.v2", Targets: 1000},
			Audit: gozzard.AuditRow{At: time.Now(), Caller: caller, Act: "operate:reload", Targets: 1000}}
		for i := range 1000 {
			addr := sim.Addr(0, i)
			t.Attempts = append(t.Attempts, gozzard.Attempt{Op: gozzard.NewOpID(), Agent: sim.AgentID(i), Addr: addr, Key: procKey(0),
				Action: gozzard.ActionReload, ResultKey: addr.String() + ":" + namespace + ":" + procKey(0).Name,
				State: gozzard.AttemptNotExecuted, Outcome: gozzard.Outcome{Code: gozzard.CodeRefused, Message: "an earlier task"},
				Deadline: t.Task.At, Expires: t.Task.At})
		}
		if _, err := store.Accept(ctx, &t); err != nil {
			return fmt.Errorf("cannot record earlier tasks: %w", err)
		}
	}
	return nil
}

// growthText is the whole page about growth.
func (r *results) growthText() string {
	return r.Markdown(sheet.Head{
		Title: "How the cost of a server grows", Command: "go run ./bench/fleet -growth",
		Shared:   " (server, simulated agents), loopback",
		Versions: sheet.Versions("", "github.com/nats-io/nats-server/v2", "modernc.org/sqlite"),
		Read: "Every agent is the real agent with its link over a machine in memory, at a lower priority (nice 10) than the server. CPU is user and system time of the server's " +
			"process alone. How the cost grows with hosts is in RESULTS.md. A task reloads processes; it ends when the caller has " +
			"read that all verdicts are there.",
	})
}
