//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// results is what the run found.
type results struct {
	size   size
	at     time.Time
	took   time.Duration
	tables []*table
	notes  []string
	faults []string
}

// table sets figures beside those of a limit or peer; peer is "" when there is none.
type table struct {
	title, ours, peer string
	lines             [][5]string // what, ours, peer, ratio, goal
}

func newResults(s size) *results { return &results{size: s, at: time.Now()} }

func (r *results) table(title, ours, peer string) *table {
	t := &table{title: title, ours: ours, peer: peer}
	r.tables = append(r.tables, t)
	return t
}

func (t *table) add(what, ours, peer, ratio, goal string) {
	t.lines = append(t.lines, [5]string{what, ours, peer, ratio, goal})
}

func (r *results) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *results) addFault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// fault is an error when something did not go as it must.
func (r *results) fault() error {
	if len(r.faults) == 0 {
		return nil
	}
	return errors.New("not all went well:\n  " + strings.Join(r.faults, "\n  "))
}

func (r *results) markdown() string {
	var s strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	command := "go run ./bench/spine"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	p("# The spine beside its limits\n")
	p("Made by `%s` on %s in %s, %s/%s, %d CPUs shared by everything in the run (server, hosts, callers, peers), loopback.",
		command, r.at.UTC().Format("2006-01-02"), r.took.Round(time.Second), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	p("%s.\n", versions())
	p("Read the ratios: both sides of a line were measured in the same run. CPU is user and system time of the server's process alone.")
	for _, t := range r.tables {
		p("\n## %s\n", t.title)
		if t.peer == "" {
			p("| | %s |\n|---|---|", t.ours)
		} else {
			p("| | %s | %s | ratio | goal |\n|---|---|---|---|---|", t.ours, t.peer)
		}
		for _, l := range t.lines {
			if t.peer == "" {
				p("| %s | %s |", l[0], l[1])
			} else {
				p("| %s |", strings.Join(l[:], " | "))
			}
		}
	}
	if len(r.notes) > 0 {
		p("\n## Notes\n")
		for _, n := range r.notes {
			p("- %s", n)
		}
	}
	if len(r.faults) > 0 {
		p("\n## What went wrong\n")
		for _, f := range r.faults {
			p("- %s", f)
		}
	}
	return s.String()
}

// versions names what was measured.
func versions() string {
	list := []string{runtime.Version()}
	info, _ := debug.ReadBuildInfo()
	for _, want := range []string{"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go", "modernc.org/sqlite"} {
		version := "of unknown version"
		if info != nil {
			if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == want }); i >= 0 {
				version = info.Deps[i].Version
			}
		}
		list = append(list, want+" "+version)
	}
	return strings.Join(list, ", ")
}

// samples are times of one kind.
type samples []time.Duration

// quantiles words the median and the 99th part of a hundred.
func (s samples) quantiles() string { return span(s.at(0.5)) + " / " + span(s.at(0.99)) }

func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// span words a time with three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

func each(d time.Duration, n int) string { return span(d / time.Duration(max(n, 1))) }

func perSecond(n int, d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(n)/max(d.Seconds(), 1e-9))
}

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return "below what the clock shows"
	}
	return fmt.Sprintf("%.2f×", float64(a)/float64(b))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }
