//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// size is how much a run measures.
type size struct {
	name      string
	limit     time.Duration // of the whole run
	processes []int         // of the businesses that are searched
	rounds    int           // of each question, at each size
	buffers   string        // of PostgreSQL: room for all its tables and indexes
	applied   int           // processes of the document that is applied
}

func fullSize() size {
	return size{name: "full", limit: 40 * time.Minute, processes: []int{200_000, 2_000_000}, rounds: 30,
		buffers: "2GB", applied: 50_000}
}

func quickSize() size {
	return size{name: "quick", limit: 5 * time.Minute, processes: []int{4_000}, rounds: 3, buffers: "64MB",
		applied: 1_000}
}

type options struct {
	size     size
	only     string // names of measurements, "" for all
	progress io.Writer
}

// bench is one run.
type bench struct {
	options
	dir string
	res *results
}

// run runs the measurements that the options name. The results are nil if it failed before the first measurement.
func run(ctx context.Context, o options) (_ *results, err error) {
	b := &bench{options: o, res: newResults(o.size)}
	if b.dir, err = os.MkdirTemp("", "gztopo"); err != nil { // the path of a socket in it must be short
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()

	for _, m := range []struct {
		name    string
		measure func(context.Context) error
	}{{"find", b.measureFind}, {"apply", b.measureApply}} {
		if !b.wants(m.name) {
			continue
		}
		if err := m.measure(ctx); err != nil {
			return b.res, fmt.Errorf("%s: %w", m.name, err)
		}
	}

	return b.res, nil
}

func (b *bench) wants(name string) bool {
	return b.only == "" || slices.Contains(strings.Split(b.only, ","), name)
}

func (b *bench) say(format string, args ...any) {
	// A run does not stop because its progress cannot be printed.
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
