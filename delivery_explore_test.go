package gozzard_test

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// How the worlds of the protocol model are explored.

// result is the result of an exploration.
type result struct {
	states int
	depth  int
	bad    string
	trace  []act

	moves     moves
	disagrees string
}

func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %d steps:", r.bad, len(r.trace))
	for i, a := range r.trace {
		fmt.Fprintf(&b, "\n  %2d. %s", i+1, a)
	}
	return b.String()
}

// fingerprint stands for a world among those visited. 128 bits leave about one chance in 10^24 that two of ten
// million worlds share one.
type fingerprint [2]uint64

type explorer struct {
	*model
	seeds   [2]maphash.Seed
	seen    map[fingerprint]int32
	parent  []int32 // by number of world
	choice  []uint16
	goal    []bool
	helpful []int32  // successors that need no fault, of all worlds one after the other
	ends    []uint32 // where those of each world end
}

// explore visits every reachable world breadth first, so that a counterexample is a shortest one. Then it checks of each
// world whether it can still reach a verdict for every attempt when no more faults happen.
func explore(c config) result {
	e := &explorer{model: &model{config: c}, seen: map[fingerprint]int32{}}
	e.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	start := e.initial()
	e.visit(&start, -1, 0)
	level, depth := []world{start}, 0
	number := int32(0) // of the world being expanded
	for len(level) > 0 {
		var next []world
		for i := range level {
			for j, s := range e.expand(&level[i]) {
				if s.bad != "" {
					return result{states: len(e.parent), depth: depth + 1, bad: s.bad,
						trace: append(e.trace(number), s.act)}
				}
				n, fresh := e.visit(&s.next, number, j)
				if fresh {
					next = append(next, s.next)
				}
				if s.helpful {
					e.helpful = append(e.helpful, n)
				}
			}
			e.ends = append(e.ends, uint32(len(e.helpful)))
			number++
		}
		if len(next) > 0 {
			depth++
		}
		level = next
	}

	r := result{states: len(e.parent), depth: depth, moves: e.moves, disagrees: e.disagrees}

	if stuck := e.stuck(); stuck >= 0 {
		r.bad, r.trace = "without further faults some attempt never gets a verdict", e.trace(stuck)
	}

	return r
}

// visit numbers a world and reports whether it is new.
func (e *explorer) visit(w *world, parent int32, choice int) (int32, bool) {
	f := fingerprint{maphash.Comparable(e.seeds[0], *w), maphash.Comparable(e.seeds[1], *w)}
	if n, ok := e.seen[f]; ok {
		return n, false
	}
	n := int32(len(e.parent))
	e.seen[f] = n
	e.parent = append(e.parent, parent)
	e.choice = append(e.choice, uint16(choice))
	e.goal = append(e.goal, e.done(w))
	return n, true
}

// stuck finds the first world from which no run of helpful steps leads to the goal, -1 when there is none. Later
// worlds tend to be nearer to the goal, so going backwards a few rounds are enough.
func (e *explorer) stuck() int32 {
	good := e.goal
	for changed := true; changed; {
		changed = false
		for n := len(good) - 1; n >= 0; n-- {
			if good[n] {
				continue
			}
			from := uint32(0)
			if n > 0 {
				from = e.ends[n-1]
			}
			for _, s := range e.helpful[from:e.ends[n]] {
				if good[s] {
					good[n], changed = true, true
					break
				}
			}
		}
	}

	for n, ok := range good {
		if !ok {
			return int32(n)
		}
	}

	return -1
}

// trace walks from the start to a world again, for its steps.
func (e *explorer) trace(n int32) []act {
	var choices []uint16
	for ; e.parent[n] >= 0; n = e.parent[n] {
		choices = append(choices, e.choice[n])
	}
	w := e.initial()
	var acts []act
	for i := len(choices) - 1; i >= 0; i-- {
		s := e.expand(&w)[choices[i]]
		acts = append(acts, s.act)
		w = s.next
	}
	return acts
}
