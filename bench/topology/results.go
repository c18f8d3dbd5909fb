//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
)

// results is the result of the run.
type results struct {
	sheet.Sheet
	size     size
	postgres string // the version of PostgreSQL
}

func newResults(s size) *results { return &results{size: s, Sheet: sheet.Sheet{At: time.Now()}} }

func (r *results) Text() string {
	command := "go run ./bench/topology"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	return r.Markdown(sheet.Head{
		Title: "Businesses beside PostgreSQL", Command: command,
		Versions: sheet.Versions(r.postgres, "github.com/jackc/pgx/v5", "modernc.org/sqlite"),
		Read:     "Read the ratios: both sides of a line were measured in the same run, question by question in turn, and gave the same answers.",
	})
}

// samples are durations of one measurement.
type samples []time.Duration

// quantiles formats the median and the 90th percentile.
func (s samples) quantiles() string { return span(s.at(0.5)) + " / " + span(s.at(0.9)) }

func (s samples) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// span formats a duration with three digits.
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
