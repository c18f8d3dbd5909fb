//go:build linux

// Command supervisors compares gozzard's agent with other process supervisors (supervisord, monit, runit, s6, pm2 and
// Pebble) and with a prototype that is the limit, in one run on one machine: how fast processes start, come back and stop, what it costs to watch them, and
// what happens to them when the supervisor itself is killed. Every supervisor has the same processes (a small program of ours)
// and its fastest settings. All are observed in the same way: the processes write
// the time of their begin into memory that the observer reads.
//
// It ends after an hour, and after 100 minutes at the latest; then it writes what it has. In the end it measures the agent alone
// with 5,000 and 15,000 processes, and profiles it at rest and in a storm. With -single it measures every supervisor with a
// single process, which takes a quarter of an hour and has its own page.
//
// As root the command installs missing Debian packages. It gets pm2 and Pebble into a temporary folder. The results
// name a peer that it could not get.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/bench/sheet"
	"github.com/gozzard/gozzard/internal/agentd"
)

func main() {
	agentd.ServeGuard() // first: this program can be an agent, too
	if len(os.Args) > 1 && os.Args[1] == profiledAgent {
		if err := runProfiledAgent(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "supervisors:", err)
			os.Exit(1)
		}
		return
	}

	quick := flag.Bool("quick", false,
		"N = 1 and 20 with few samples, to see that everything works; the figures mean nothing")
	life := flag.Bool("life", false,
		"measure only supervisors at work with their fastest settings, once: for use while you change the agent")
	single := flag.Bool("single", false, "measure only with a single process; the table is in bench/supervisors/SINGLE.md")
	counts := flag.String("n", "100,1000", "how many processes are supervised, by commas")
	only := flag.String("only", "", "measure only these, by commas: "+strings.Join(peerNames(), ","))
	out := flag.String("out", "", "file for the table; default bench/supervisors/RESULTS.md, none with -quick, -life, -large, -profiles or -only")
	binary := flag.String("binary", os.Getenv("GOZZARD_BINARY"), "a gozzard that is built already; default: build one")
	large := flag.Bool("large", false, "measure only the agent with 5,000 and 15,000 processes, and where it spends time and memory")
	profiles := flag.String("profiles", "", "only profile the agent, with each number of -n, and keep the profiles in this folder")
	install := flag.Bool("install", true, "get peers that are missing")
	flag.Parse()
	o := options{size: fullSize(), binary: *binary, install: *install, progress: os.Stderr,
		command: "go run ./bench/supervisors"}

	if len(os.Args) > 1 {
		o.command += " " + strings.Join(os.Args[1:], " ")
	}

	most := maxCount
	if *profiles != "" {
		most = maxPlaces
	}
	err := o.choose(*counts, *only, most)
	if err == nil && flag.NArg() > 0 {
		err = fmt.Errorf("this command takes no arguments")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervisors:", err)
		os.Exit(2)
	}

	if *quick {
		o.size = quickSize()
	}
	if *single {
		o.size.singleOnly()
	}
	if *life {
		o.size.lifeOnly()
	}

	if *large {
		o.size.largeOnly()
	}

	if o.keep = *profiles; o.keep != "" {
		o.size.profilesOnly()
	}

	path := *out
	if path == "" && !*quick && !*life && !*large && *only == "" && o.keep == "" {
		path = "bench/supervisors/RESULTS.md"
		if *single {
			path = "bench/supervisors/SINGLE.md"
		}
	}

	os.Exit(sheet.Command("supervisors", path, o.size.limit, func(ctx context.Context) (*results, error) { return run(ctx, o) }))
}

// choose parses the two lists of the command line.
func (o *options) choose(counts, only string, most int) error {
	o.size.counts = nil
	for s := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("-n: %q is not a number from 1 to %d", s, most)
		}
		o.size.counts = append(o.size.counts, n)
	}

	known := peerNames()
	for s := range strings.SplitSeq(only, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if !slices.Contains(known, s) {
			return fmt.Errorf("-only: no supervisor is called %q", s)
		}
		o.only = append(o.only, s)
	}

	return nil
}
