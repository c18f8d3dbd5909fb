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
	size     size
	at       time.Time
	took     time.Duration
	postgres string // its version
	tables   []*table
	notes    []string
	faults   []string
}

// table sets figures beside those of a peer; peer is "" when there is none.
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
	command := "go run ./bench/topology"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	p("# Businesses beside PostgreSQL\n")
	p("Made by `%s` on %s in %s, %s/%s, %d CPUs shared by everything in the run.", command, r.at.UTC().Format("2006-01-02"), r.took.Round(time.Second),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	p("%s.\n", r.versions())
	p("Read the ratios: both sides of a line were measured in the same run, question by question in turn, and gave the same answers.")
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
	section(p, "Notes", r.notes)
	section(p, "What went wrong", r.faults)
	return s.String()
}

func section(p func(format string, args ...any), title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p("\n## %s\n", title)
	for _, l := range lines {
		p("- %s", l)
	}
}

// versions names what was measured.
func (r *results) versions() string {
	list := []string{runtime.Version()}
	if r.postgres != "" {
		list = append(list, r.postgres)
	}
	info, _ := debug.ReadBuildInfo()
	for _, want := range []string{"github.com/jackc/pgx/v5", "modernc.org/sqlite"} {
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

// quantiles words the median and the worst but a tenth.
func (s samples) quantiles() string { return span(s.at(0.5)) + " / " + span(s.at(0.9)) }

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

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return "below what the clock shows"
	}
	return fmt.Sprintf("%.3g×", float64(a)/float64(b))
}
