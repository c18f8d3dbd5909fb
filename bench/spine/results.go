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
	size   size
	beside bool // it compares two programs
}

func newResults(s size) *results { return &results{size: s, Sheet: sheet.Sheet{At: time.Now()}} }

func (r *results) Text() string {
	command := "go run ./bench/spine"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	if r.beside {
		return r.Markdown(sheet.Head{Title: "The spine before and now", Command: command + " -before FILE",
			Shared: " (server, hosts, callers)", Versions: sheet.Versions(""),
			Read: "Read the ratios: now to before. Each figure is the median of several runs, with the least and the greatest."})
	}
	return r.Markdown(sheet.Head{
		Title: "The spine beside its limits", Command: command, Shared: " (server, hosts, callers, peers), loopback",
		Versions: sheet.Versions("", "github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go",
			"modernc.org/sqlite"),
		Read: "Read the ratios: both sides of a line were measured in the same run. CPU is user and system time of the server's process alone.",
	})
}

// samples are durations of one measurement.
type samples []time.Duration

// quantiles formats the median and the 99th percentile.
func (s samples) quantiles() string { return span(s.at(0.5)) + " / " + span(s.at(0.99)) }

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
