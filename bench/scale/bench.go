//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
)

// servers is how many servers the installation has.
const servers = 3

type options struct {
	agents    int
	listed    int           // hosts in the record and in the lists; those above agents have no agent
	processes int           // on each host
	rest      time.Duration // how long the fleet at rest is measured
	settle    time.Duration // between the last joined agent and the rest, until each has sent a full report in it
	rounds    int           // of operations
	looks     int           // at each list
	profiles  string        // folder of the profiles; "" keeps none
	progress  io.Writer
}

// quick makes the run small.
func (o *options) quick() {
	o.agents, o.rest, o.settle, o.rounds, o.looks = 300, 10*time.Second, 5*time.Second, 1, 5
}

// bench is one run.
type bench struct {
	options
	dir     string // on the disk
	shm     string // in memory: the state of simulated agents
	pg      *postgres
	servers []*server // that were not killed
	all     []*server
	hosts   []*hostPart
	res     *results
	m       measured
}

// hostPart is a process with some of the simulated hosts.
type hostPart struct {
	*child.Process
	first, n int
}

// play is a part of the run.
func play(ctx context.Context, part, text string) error {
	switch part {
	case "server":
		o, err := crowd.Order[profile.Server](text)
		if err != nil {
			return err
		}
		return o.Run(ctx, crowd.WriteHolding)
	case "hosts":
		o, err := crowd.Order[crowd.Hosts](text)
		if err != nil {
			return err
		}
		return crowd.RunHosts(ctx, o)
	case "bare-server":
		o, err := crowd.Order[bareServer](text)
		if err != nil {
			return err
		}
		return o.run(ctx)
	case "bare-agents":
		o, err := crowd.Order[crowd.BareAgents](text)
		if err != nil {
			return err
		}
		return crowd.RunBareAgents(ctx, o)
	}
	return fmt.Errorf("no part is called %q", part)
}

// run measures everything. The results are nil if it failed before the first measurement.
func run(ctx context.Context, o options) (_ *results, err error) {
	// Make the folders.
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("", "gozzard-scale-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.shm, err = os.MkdirTemp("/dev/shm", "gozzard-scale-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder in memory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.shm)) }()
	if b.profiles == "" {
		b.profiles = filepath.Join(b.dir, "profiles")
	}
	b.res = newResults(&b.options)
	if err := b.fit(); err != nil {
		return nil, err
	}

	// Measure.
	if b.pg, err = startPostgres(ctx); err != nil {
		return nil, err
	}
	defer b.pg.stop()
	if err := b.ours(ctx); err != nil {
		return b.res, err
	}
	if err := b.bare(ctx); err != nil {
		return b.res, fmt.Errorf("bare NATS: %w", err)
	}
	return b.res, b.res.add(b)
}

// ours measures the installation.
func (b *bench) ours(ctx context.Context) (err error) {
	defer func() {
		for _, s := range b.all {
			if err != nil && s.Process != nil {
				err = fmt.Errorf("%w\nthe log of server %d ends with:\n%s", err, s.n, s.Tail())
			}
		}
		b.stopHosts(len(b.hosts))
		b.stopServers()
	}()

	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"preparing", b.prepare}, {"joining", b.join}, {"at rest", b.measureRest}, {"one operation on each host", b.measureFan},
		{"a task with many targets", b.measureAccept}, {"lists", b.measureLists}, {"expressions", b.measureExpression},
		{"hosts are lost", b.measureLoss}, {"a server is killed", b.measureKill},
	} {
		b.say("%d agents: %s", b.agents, step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (b *bench) say(format string, args ...any) {
	// A run does not stop because its progress cannot be printed.
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// needs are the processes without which nothing can go on.
func (b *bench) needs() (list []*child.Process) {
	for _, s := range b.servers {
		list = append(list, s.Process)
	}
	for _, h := range b.hosts {
		list = append(list, h.Process)
	}
	return list
}
