package explore_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/test/explore"
)

// word is what happens in a step.
type word string

func (w word) String() string { return string(w) }

// counter is a model whose worlds are numbers: it counts up to most, and by a fault back to 0.
type counter struct {
	most, goal int
	forbidden  int // a number that breaks a promise; 0: none
	trap       int // a number that only a fault leaves; 0: none
}

type step = explore.Step[int, word]

func (c counter) Initial() int     { return 0 }
func (c counter) Done(n *int) bool { return *n == c.goal }

func (c counter) Expand(n *int) []step {
	steps := []step{{Next: 0, Act: "reset"}}
	if *n == c.most || c.trap > 0 && *n == c.trap {
		return steps
	}

	up := step{Next: *n + 1, Act: "count", Helpful: true}
	if up.Next == c.forbidden {
		up.Bad = "forbidden"
	}
	return append(steps, up)
}

// TestAll: every world is visited once, a broken promise comes with the shortest way to it, and so does a world from which
// the goal cannot be reached without a fault.
func TestAll(t *testing.T) {
	if r := explore.All(counter{most: 5, goal: 5}, "stuck"); r.States != 6 || r.Depth != 5 || r.Bad != "" {
		t.Errorf("all is well: %+v", r)
	}

	r := explore.All(counter{most: 5, goal: 5, forbidden: 3}, "stuck")
	if r.Bad != "forbidden" || r.Depth != 3 || len(r.Trace) != 3 {
		t.Errorf("a broken promise: %+v", r)
	}
	if text := r.String(); !strings.Contains(text, "forbidden after 3 steps:\n   1. count") {
		t.Errorf("it says %s", text)
	}

	r = explore.All(counter{most: 5, goal: 5, trap: 2}, "stuck")
	if r.Bad != "stuck" || r.States != 3 || len(r.Trace) != 0 {
		t.Errorf("no way to the goal: %+v", r)
	}
}
