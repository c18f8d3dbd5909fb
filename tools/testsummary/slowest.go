package main

import (
	"cmp"
	"fmt"
	"slices"
)

// slowestShown is how many tests the end of a summary names with their times.
const slowestShown = 15

// timed is a test without its subtests, with what it took.
type timed struct {
	testKey
	seconds float64
}

// printSlowest names the tests that took longest: a reader who wants a faster run begins there.
func (s *summary) printSlowest() {
	slices.SortStableFunc(s.times, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })

	shown := s.times[:min(slowestShown, len(s.times))]
	if len(shown) == 0 || shown[0].seconds < 1 {
		return
	}

	fmt.Fprintln(s.out, "slowest tests:")
	for _, test := range shown {
		if test.seconds >= 1 {
			fmt.Fprintf(s.out, "  %6.1fs  %s\n", test.seconds, test.testKey)
		}
	}
}
