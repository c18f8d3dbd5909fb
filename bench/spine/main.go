//go:build linux

// Command spine measures the whole path of an operation, status reports and status pages, and compares them in the same
// run with the bare parts that they consist of: an operation with bare NATS and bare SQLite commits, a report with bare
// NATS, a page with the same page from SQLite. It runs the real program on loopback, with the server and the simulated
// hosts as separate processes. It prints ratios, because absolute figures of one machine say little about another.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

func main() {
	if served, code := serveRole(os.Args[1:]); served {
		os.Exit(code)
	}

	quick := flag.Bool("quick", false, "small counts, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the table; default bench/spine/RESULTS.md, none with -quick")
	binary := flag.String("binary", os.Getenv("GOZZARD_BINARY"), "a gozzard that is built already; default: build one")
	only := flag.String("only", "", "measure only these, by commas: single,fanout,ingest,pages,large; pages has large")
	profiles := flag.String("profiles", "", "folder for profiles of the server, which is then a part of this program; default: none")
	before := flag.String("before", "", "another gozzard that is built already: measure both in turns, and compare them")
	times := flag.Int("times", 3, "how often each is measured with -before")
	flag.Parse()

	if flag.NArg() > 0 || *times < 1 {
		fmt.Fprintln(os.Stderr, "spine: no arguments are taken, and -times is at least 1")
		os.Exit(2)
	}

	o := options{size: fullSize(), binary: *binary, only: *only, profiles: *profiles, progress: os.Stderr}

	if *quick {
		o.size = quickSize()
	}

	path := *out
	if path == "" && !*quick && *only == "" && *profiles == "" && *before == "" {
		path = "bench/spine/RESULTS.md"
	}

	limit, measure := o.size.limit, func(ctx context.Context) (*results, error) { return run(ctx, o) }
	if *before != "" {
		limit *= time.Duration(2 * *times)
		measure = func(ctx context.Context) (*results, error) { return beside(ctx, o, *before, *times) }
	}
	os.Exit(sheet.Command("spine", path, limit, measure))
}
