//go:build linux

// Command fleet measures what a large fleet costs its server: CPU at rest, memory for each agent, and the time until all
// agents are back after the server was killed. It runs the server of the program on loopback with simulated hosts (the real agent
// and link, with signatures and sessions, over machines in memory), with and without TLS, and beside it in the same run
// bare NATS with as many connections and messages.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// limit is the time that the whole run may take.
const limit = 90 * time.Minute

func main() {
	if served, code := serveRole(os.Args[1:]); served {
		os.Exit(code)
	}

	sizes := flag.String("sizes", "1000,10000,19000", "numbers of agents, by commas")
	ways := flag.String("ways", "plain,tls", "how agents connect, by commas: plain, tls")
	processes := flag.Int("processes", 20, "processes on each host")
	rest := flag.Duration("rest", 30*time.Second, "how long the fleet at rest is measured")
	quick := flag.Bool("quick", false, "1,000 agents, and little time for each figure")
	growth := flag.Bool("growth", false, "measure how the cost grows with processes, targets and history instead, on 1,000 agents")
	out := flag.String("out", "", "file for the tables; default bench/fleet/RESULTS.md, none with -quick")
	binary := flag.String("binary", "", "a gozzard that is built already, measured without profiles; default: the server of this source")
	profiles := flag.String("profiles", "", "folder in which the profiles are kept; default: none")
	flag.Parse()

	o := options{processes: *processes, rest: *rest, settle: 35 * time.Second, binary: *binary, profiles: *profiles,
		ways: strings.Split(*ways, ","), progress: os.Stderr}
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || flag.NArg() > 0 {
			fmt.Fprintln(os.Stderr, "fleet: -sizes needs numbers above 0, and there are no other arguments")
			os.Exit(2)
		}
		o.sizes = append(o.sizes, n)
	}
	name := "RESULTS.md"
	if *growth {
		size := fullGrowth()
		o.growth, name = &size, "GROWTH.md"
	}
	if *quick {
		o.quick()
	}
	path := *out
	if path == "" && !*quick {
		path = "bench/fleet/" + name
	}

	os.Exit(sheet.Command("fleet", path, limit, func(ctx context.Context) (*results, error) { return run(ctx, o) }))
}
