//go:build linux

// Command console measures the console with a large fleet: a real server, simulated hosts that report over real links,
// and a real browser. It compares its figures with the limits that people notice.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// reporterRole is the hidden first argument of the process that plays the hosts.
const reporterRole = "-role=reporters"

// options are the sizes of a run.
type options struct {
	hosts, processes int // processes on each host
	changes          int // a second
	viewers          int
	hold             bool // only start the fleet
	binary           string
	dir              string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == reporterRole {
		if err := runReporters(ctx, os.Args[2:]); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "console:", err)
			os.Exit(1)
		}
		return
	}

	var o options
	quick := flag.Bool("quick", false, "a small fleet, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the table; default bench/console/RESULTS.md, none with -quick")
	flag.StringVar(&o.binary, "binary", os.Getenv("GOZZARD_BINARY"), "a gozzard with console that is built already; default: bin/gozzard")
	flag.BoolVar(&o.hold, "hold", false, "start the fleet, print where it is, and wait for Ctrl-C: to look at it by hand")
	flag.Parse()

	o.hosts, o.processes, o.changes, o.viewers = 1000, 1000, 20_000, 200
	if *quick {
		o.hosts, o.processes, o.changes, o.viewers = 20, 50, 100, 5
	}
	if o.binary == "" {
		o.binary = "bin/gozzard"
	}
	path := *out
	if path == "" && !*quick {
		path = "bench/console/RESULTS.md"
	}

	if err := measureTo(ctx, o, path); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// measureTo runs the measurements, prints the table and writes it to path if that is not empty.
func measureTo(ctx context.Context, o options, path string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	if o.dir, err = os.MkdirTemp("", "gozzard-bench-console-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)

	began := time.Now()
	s := &sheet.Sheet{At: began}
	if err := run(ctx, o, s); err != nil || o.hold {
		return err
	}
	s.Took = time.Since(began)

	text := s.Markdown(sheet.Head{Title: "The console with a large fleet", Command: "make bench-console",
		Shared:   ": a server, " + fmt.Sprint(o.hosts) + " simulated hosts and a headless Chromium without a graphics card",
		Versions: sheet.Versions("", "github.com/chromedp/chromedp"),
		Read:     "Every figure stands beside the limit that it must keep. CPU is the time of one core."})
	fmt.Print(text)
	if path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write the results: %w", err)
		}
	}
	return s.Fault()
}

// run starts everything, measures and stops everything.
func run(ctx context.Context, o options, s *sheet.Sheet) error {
	// Start the server, and wait until it knows the whole fleet.
	f, err := startFleet(ctx, o)
	if err != nil {
		return err
	}
	defer f.stop()

	if o.hold {
		fmt.Printf("%s/console/ as %s with the password %s\n", f.url, benchUser, benchPassword)
		<-ctx.Done()
		return nil
	}

	// Measure in the browser.
	table := s.Table("In the browser", "measured", "limit")
	if err := f.measureBrowser(ctx, o, s, table); err != nil {
		return fmt.Errorf("in the browser: %w", err)
	}
	fmt.Fprintln(os.Stderr, "console: measured in the browser")

	// Measure what viewers cost the server.
	return f.measureViewers(ctx, o, s)
}

// child is a process of this run. It ends with this program.
func child(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// logFile makes a file for the output of a child.
func logFile(dir, name string) (*os.File, error) { return os.Create(filepath.Join(dir, name+".log")) }
