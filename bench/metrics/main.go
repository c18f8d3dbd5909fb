//go:build linux

// Command metrics measures what scrapes cost: how long one takes, how large it is, and how much processor time an agent
// with many processes uses with and without scrapes, in the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// size says how much is measured.
type size struct {
	name      string
	processes int
	window    time.Duration // with scrapes, and as long without
	rounds    int           // of both windows
	every     time.Duration // between scrapes
	limit     time.Duration
}

func fullSize() size {
	return size{name: "full", processes: 1000, window: 20 * time.Second, rounds: 3, every: time.Second,
		limit: 15 * time.Minute}
}

func quickSize() size {
	return size{name: "quick", processes: 20, window: 2 * time.Second, rounds: 1, every: 200 * time.Millisecond,
		limit: 5 * time.Minute}
}

func main() {
	quick := flag.Bool("quick", false, "small counts, to see that everything works; the figures mean nothing")
	binary := flag.String("binary", "", "`FILE` of the program; default: it is built")
	out := flag.String("out", "", "file for the tables; default bench/metrics/RESULTS.md, none with -quick")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "metrics: no arguments are taken")
		os.Exit(2)
	}

	s, path := fullSize(), *out
	if *quick {
		s = quickSize()
	} else if path == "" {
		path = "bench/metrics/RESULTS.md"
	}
	os.Exit(sheet.Command("metrics", path, s.limit, func(ctx context.Context) (*results, error) {
		return run(ctx, s, *binary)
	}))
}
