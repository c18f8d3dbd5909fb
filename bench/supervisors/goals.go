//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// goal is what the agent shall reach beside the limit, a peer or a fixed value.
type goal struct {
	n     int
	row   row
	than  string  // name of a supervisor; "" for a fixed value
	times float64 // of its figure, or the value
}

func goals() []goal {
	return []goal{
		{1000, rowIdle, "prototype", 2},
		{100, rowCrash50, "prototype", 1.5}, {1000, rowCrash50, "prototype", 1.5}, {1000, rowCrash99, "runit", 1},
		{100, rowStorm, "pebble", 1}, {1000, rowStorm, "pebble", 1},
		{100, rowStorm, "prototype", 1.5}, {1000, rowStorm, "prototype", 1.5},
		{1000, rowPSS, "", 40},
	}
}

// missedGoals says by how much goals are missed, and why.
func (r *results) missedGoals() (list []string) {
	for _, g := range goals() {
		ours, ok := r.found[g.n]["gozzard"][g.row]
		most, words := g.times, "the goal"
		if g.than != "" {
			other, known := r.found[g.n][g.than][g.row]
			ok = ok && known
			most, words = g.times*other.value, fmt.Sprintf("%.1f times %s (%s)", g.times, g.than, other)
		}
		if !ok || ours.value <= most {
			continue
		}
		list = append(list, fmt.Sprintf("N = %d, %s: gozzard %s, at most %.1f (%s): %s", g.n, g.row, ours, most, words, g.row.why()))
	}
	return list
}

// openLimit is how many files the agent may open.
func openLimit() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return l.Cur
}
