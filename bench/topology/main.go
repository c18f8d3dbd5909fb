//go:build linux

// Command topology measures queries about businesses, as process_status sends them, and compares them with the same
// queries to a PostgreSQL that has the same processes and is started in the same run. It also measures how long it
// takes to apply a large document. It checks that both sides give the same answers. It prints ratios, because absolute
// figures of one machine say little about another.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/gozzard/gozzard/bench/sheet"
)

func main() {
	quick := flag.Bool("quick", false, "small counts, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the tables; default bench/topology/RESULTS.md, none with -quick or -only")
	only := flag.String("only", "", "measure only these, by commas: find,apply")
	flag.Parse()

	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "topology: no arguments are taken")
		os.Exit(2)
	}

	o := options{size: fullSize(), only: *only, progress: os.Stderr}

	if *quick {
		o.size = quickSize()
	}

	path := *out
	if path == "" && !*quick && *only == "" {
		path = "bench/topology/RESULTS.md"
	}

	os.Exit(sheet.Command("topology", path, o.size.limit, func(ctx context.Context) (*results, error) { return run(ctx, o) }))
}
