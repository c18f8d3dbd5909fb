//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestLargest: the costs of parts count with what they call, and those of memory without.
func TestLargest(t *testing.T) {
	const list = `File: supervisors
Showing nodes accounting for 490ms, 100% of 490ms total
      flat  flat%   sum%        cum   cum%
         0     0%     0%      300ms 61.22%  github.com/gozzard/gozzard/internal/supervise.(*Supervisor).guard
      10ms  2.04%  2.04%      160ms 32.65%  github.com/gozzard/gozzard/internal/supervise.(*actor).work
         0     0%  2.04%       60ms 12.24%  github.com/gozzard/gozzard/internal/agent.(*Agent).loop
      50ms 10.20% 12.24%       50ms 10.20%  runtime.memmove (inline)
`
	got := largest(list, true)
	if len(got) != 2 || !strings.HasPrefix(got[0], "32.65% (160ms): internal/supervise.(*actor).work, ") {
		t.Errorf("parts: %q", got)
	}
	if got := largest(list, false); !slices.Equal(got[:1], []string{"10.20% (50ms): runtime.memmove"}) {
		t.Errorf("functions: %q", got)
	}
}

func TestMissedGoals(t *testing.T) {
	r := newResults(options{})
	r.add(1000, false, "gozzard", figures{rowIdle: {value: 90, digits: 1}, rowPSS: {value: 41, digits: 1}, rowStorm: {value: 10}})
	r.add(1000, false, "prototype", figures{rowIdle: {value: 50, digits: 1}, rowStorm: {value: 5}})
	got := r.missedGoals()
	if len(got) != 2 || !strings.Contains(got[0], "1.5 times prototype") || !strings.Contains(got[1], "gozzard 41.0, at most 40.0") {
		t.Errorf("got %q", got)
	}
}
