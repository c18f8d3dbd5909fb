//go:build linux

// Command spine measures the whole path of an operation, status reports and status pages beside the bare parts that
// they are made of, in one run: an operation beside bare NATS and bare SQLite commits, a report beside bare NATS, a
// page beside the same page out of SQLite. It drives the real program (server and simulated hosts as processes of
// their own) on loopback and prints ratios, since figures of one machine say little of another.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if served, code := serveRole(os.Args[1:]); served {
		os.Exit(code)
	}

	quick := flag.Bool("quick", false, "small counts, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the table; default bench/spine/RESULTS.md, none with -quick")
	binary := flag.String("binary", os.Getenv("GOZZARD_BINARY"), "a gozzard that is built already; default: build one")
	only := flag.String("only", "", "measure only these, by commas: single,fanout,ingest,pages")
	flag.Parse()

	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "spine: no arguments are taken")
		os.Exit(2)
	}

	o := options{size: fullSize(), binary: *binary, only: *only, progress: os.Stderr}

	if *quick {
		o.size = quickSize()
	}

	path := *out
	if path == "" && !*quick && *only == "" {
		path = "bench/spine/RESULTS.md"
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := measureTo(ctx, o, path); err != nil {
		fmt.Fprintln(os.Stderr, "spine:", err)
		os.Exit(1)
	}
}

// measureTo measures, prints the table and, when a path is given, writes it there.
func measureTo(ctx context.Context, o options, path string) error {
	ctx, cancel := context.WithTimeout(ctx, o.size.limit)
	defer cancel()
	began := time.Now()
	res, err := run(ctx, o)
	if res != nil {
		res.Took = time.Since(began)
		fmt.Print(res.markdown())
	}

	if err != nil {
		return err
	}
	if path != "" {
		if err := os.WriteFile(path, []byte(res.markdown()), 0o644); err != nil {
			return fmt.Errorf("cannot write the results: %w", err)
		}
	}

	return res.Fault()
}
