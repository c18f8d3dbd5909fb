//go:build linux

// Command scale measures an installation of three servers on one PostgreSQL, with simulated hosts that are enrolled and
// connect over TLS: memory and CPU for each agent, an operation on all of them, lists of all processes, the return after one
// server was killed, and how soon the loss of hosts is noticed. Beside it, in the same run, are a cluster of three bare NATS
// servers with as many connections, and the same rows in bare PostgreSQL.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/sheet"
)

// limit is the time that the whole run may take.
const limit = 3 * time.Hour

func main() {
	if played, code := crowd.Play("scale", os.Args[1:], play); played {
		os.Exit(code)
	}

	agents := flag.Int("agents", 50_000, "number of agents")
	listed := flag.Int("listed", 0, "number of hosts in the lists, with or without an agent; default: the number of agents that was asked for")
	processes := flag.Int("processes", 20, "processes on each host")
	rest := flag.Duration("rest", 30*time.Second, "how long the fleet at rest is measured")
	quick := flag.Bool("quick", false, "300 agents, and little time for each figure")
	out := flag.String("out", "", "file for the tables; default bench/scale/RESULTS.md, none with -quick")
	profiles := flag.String("profiles", "", "folder in which the profiles are kept; default: none")
	flag.Parse()
	if *agents < 4 || *processes < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "scale: at least 4 agents with a process are needed, and there are no other arguments")
		os.Exit(2)
	}

	o := options{agents: *agents, listed: *listed, processes: *processes, rest: *rest, settle: 35 * time.Second, rounds: 3, looks: 20,
		profiles: *profiles, progress: os.Stderr}
	path := *out
	if *quick {
		o.quick()
	} else if path == "" {
		path = "bench/scale/RESULTS.md"
	}
	os.Exit(sheet.Command("scale", path, limit, func(ctx context.Context) (*results, error) { return run(ctx, o) }))
}
