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

// options say what a run measures.
type options struct {
	size
	hold   bool // only start the fleet
	binary string
	dir    string
}

// size is how large a run is, and how long it measures.
type size struct {
	hosts, processes int // processes on each host
	changes          int // a second
	viewers          int
	settle           time.Duration // with changes, before the frames are measured
	repeats          int           // of scrolling and filtering: the median counts
	scroll           time.Duration // in each repeat
	remember         time.Duration // with changes, before the memory is measured
	catchUp          time.Duration // of viewers
	view             time.Duration
}

func wholeSize() size {
	return size{hosts: 1000, processes: 1000, changes: 20_000, viewers: 200, settle: 5 * time.Second,
		repeats: 3, scroll: 5 * time.Second, remember: 10 * time.Second, catchUp: 2 * time.Second, view: 15 * time.Second}
}

// quickSize is only large enough to see that everything works.
func quickSize() size {
	return size{hosts: 20, processes: 50, changes: 100, viewers: 5, settle: 100 * time.Millisecond,
		repeats: 1, scroll: time.Second, remember: 100 * time.Millisecond, catchUp: 100 * time.Millisecond, view: time.Second}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if served, code := serveRole(ctx, os.Args[1:]); served {
		os.Exit(code)
	}

	var o options
	quick := flag.Bool("quick", false, "a small fleet, to see that everything works; the figures mean nothing")
	out := flag.String("out", "", "file for the table; default bench/console/RESULTS.md, none with -quick")
	flag.StringVar(&o.binary, "binary", os.Getenv("GOZZARD_BINARY"), "a gozzard with console that is built already; default: bin/gozzard")
	flag.BoolVar(&o.hold, "hold", false, "start the fleet, print where it is, and wait for Ctrl-C: to look at it by hand")
	flag.Parse()

	o.size = wholeSize()
	if *quick {
		o.size = quickSize()
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

// serveRole plays the hosts if the arguments say so. It returns the code with which the program ends.
func serveRole(ctx context.Context, args []string) (served bool, code int) {
	if len(args) == 0 || args[0] != reporterRole {
		return false, 0
	}
	if err := runReporters(ctx, args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		return true, 1
	}
	return true, 0
}

// measureTo runs the measurements, prints the table and writes it to path if that is not empty.
func measureTo(ctx context.Context, o options, path string) (err error) {
	if o.dir, err = os.MkdirTemp("", "gozzard-bench-console-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	s, text, err := measure(ctx, o)
	if err != nil || o.hold {
		return err
	}

	fmt.Print(text)
	if path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write the results: %w", err)
		}
	}
	return s.Fault()
}

// measure runs the measurements and returns their results, also as text.
func measure(ctx context.Context, o options) (*sheet.Sheet, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	began := time.Now()
	s := &sheet.Sheet{At: began}
	if err := run(ctx, o, s); err != nil {
		return nil, "", err
	}
	s.Took = time.Since(began)

	return s, s.Markdown(sheet.Head{Title: "The console with a large fleet", Command: "make bench-console",
		Shared:   ": a server, " + fmt.Sprint(o.hosts) + " simulated hosts and a headless Chromium without a graphics card",
		Versions: sheet.Versions("", "github.com/chromedp/chromedp"),
		Read:     "Every figure stands beside the limit that it must keep. CPU is the time of one core."}), nil
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
