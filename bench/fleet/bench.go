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
)

// The ways in which agents connect.
const (
	wayPlain = "plain"
	wayTLS   = "tls"
)

type options struct {
	sizes     []int
	ways      []string
	processes int           // on each host
	rest      time.Duration // how long the fleet at rest is measured
	settle    time.Duration // between the last joined agent and the rest, until each has sent a full report in it
	binary    string        // a built program, which writes no profiles; "": the server is a part of this program
	profiles  string        // folder of the profiles; "" keeps none
	growth    *growthSize   // measured instead of the sizes; nil: the sizes
	progress  io.Writer
}

// quick makes the run small: 1,000 agents, and no time to settle.
func (o *options) quick() {
	o.sizes, o.rest, o.settle = []int{1000}, 15*time.Second, 5*time.Second
	if o.growth != nil {
		size := quickGrowth()
		o.growth, o.rest, o.settle = &size, time.Second, time.Second
	}
}

// bench is one run.
type bench struct {
	options
	dir string // on the disk: the databases of the servers
	shm string // in memory: the state of simulated agents
	res *results
}

// run measures every size in every way. The results are nil if it failed before the first measurement.
func run(ctx context.Context, o options) (_ *results, err error) {
	// Make the folders.
	b := &bench{options: o, res: newResults(o)}
	if b.dir, err = os.MkdirTemp("", "gozzard-fleet-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.shm, err = os.MkdirTemp("/dev/shm", "gozzard-fleet-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder in memory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.shm)) }()
	if b.profiles == "" {
		b.profiles = filepath.Join(b.dir, "profiles")
	}
	if err := os.MkdirAll(b.profiles, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the profiles: %w", err)
	}

	// Measure.
	if o.growth != nil {
		return b.res, b.growth(ctx, *o.growth)
	}
	for _, way := range o.ways {
		if way != wayPlain && way != wayTLS {
			return nil, fmt.Errorf("agents cannot connect by %q: use %s or %s", way, wayPlain, wayTLS)
		}
		for _, n := range o.sizes {
			if err := b.measure(ctx, way, n); err != nil {
				return b.res, fmt.Errorf("%d agents, %s: %w", n, way, err)
			}
		}
	}
	return b.res, nil
}

func (b *bench) say(format string, args ...any) {
	// A run does not stop because its progress cannot be printed.
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
