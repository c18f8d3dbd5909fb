//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// size is how much a run measures.
type size struct {
	name    string
	limit   time.Duration // of the whole run
	callers int           // at the same time, on one host
	singles int           // operations on one host
	hosts   int
	blocks  int // ours and the limit alternate, so that a change of the machine's load affects both
	rounds  int // fan-outs in one block
	links   int // connections of the status ingest
	reports int // reports of each link
	names   int // processes registered on each host
	pages   int // page queries of each kind

	forget time.Duration // after the registration, before memory is measured
}

func fullSize() size {
	return size{
		name: "full", limit: 20 * time.Minute, callers: 32, singles: 5000, hosts: 2000, blocks: 4, rounds: 5,
		links: 500, reports: 60, names: 100,
		pages: 300, forget: 75 * time.Second,
	}
}

func quickSize() size {
	return size{
		name: "quick", limit: 2 * time.Minute, callers: 4, singles: 60, hosts: 20, blocks: 1, rounds: 2, links: 5,
		reports: 10, names: 6, pages: 10,
	}
}

type options struct {
	size     size
	binary   string // "" builds one
	only     string // names of measurements, "" for all
	profiles string // folder of the profiles, "" for none
	progress io.Writer
}

// bench is one run.
type bench struct {
	options
	dir    string // on the disk: the databases of the servers
	shm    string // in memory: the state of simulated agents
	res    *results
	server []string // logs of servers, checked at the end

	profiled []profiled
}

// run runs the measurements that the options name. The results are nil if it failed before the first measurement.
func run(ctx context.Context, o options) (_ *results, err error) {
	b := &bench{options: o, res: newResults(o.size)}
	if b.dir, err = os.MkdirTemp("", "gozzard-spine-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()

	if b.shm, err = os.MkdirTemp("/dev/shm", "gozzard-spine-"); err != nil {
		return nil, fmt.Errorf("cannot make a folder in memory: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(b.shm)) }()

	if b.binary == "" {
		b.say("building the program")
		if b.binary, err = child.Build(ctx, b.dir, "gozzard", "./cmd/gozzard"); err != nil {
			return nil, err
		}
	}

	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o755); err != nil {
			return nil, fmt.Errorf("cannot make the folder of the profiles: %w", err)
		}
	}

	for _, m := range []struct {
		name    string
		measure func(context.Context) error
	}{{"single", b.measureSingle}, {"ingest", b.measureIngest}, {"fanout", b.measureFleet}} {
		if !b.wants(m.name) && !(m.name == "fanout" && (b.wants("pages") || b.wants("large"))) {
			continue
		}
		if err := m.measure(ctx); err != nil {
			return b.res, fmt.Errorf("%s: %w", m.name, err)
		}
	}

	b.lookThroughLogs()
	return b.res, b.tellCosts()
}

func (b *bench) wants(name string) bool {
	return b.only == "" || slices.Contains(strings.Split(b.only, ","), name)
}

func (b *bench) say(format string, args ...any) {
	// A run does not stop because its progress cannot be printed.
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// lookThroughLogs reports every warning in a server's log as a fault: a figure is worthless if something failed
// meanwhile.
func (b *bench) lookThroughLogs() {
	// Logs are JSON or text.
	warning := regexp.MustCompile(`"level":"(WARN|ERROR)"|level=(WARN|ERROR)|^(panic|fatal error):`)
	for _, path := range b.server {
		text, err := os.ReadFile(path)
		if err != nil {
			b.res.AddFault("cannot read a server's log: %v", err)
			continue
		}
		n, first := 0, ""
		for line := range strings.Lines(string(text)) {
			if warning.MatchString(line) {
				if n++; n == 1 {
					first = strings.TrimSpace(line)
				}
			}
		}
		if n > 0 {
			b.res.AddFault("a server warned %d times, first: %s", n, first)
		}
	}
}
