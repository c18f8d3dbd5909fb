package supervise

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// modelResult is the result of an exploration.
type modelResult struct {
	states, depth int
	bad           string
	trace         []string
}

func (r modelResult) String() string {
	s := fmt.Sprintf("%s after %d steps:", r.bad, len(r.trace))
	for i, t := range r.trace {
		s += fmt.Sprintf("\n  %2d. %s", i+1, t)
	}
	return s
}

// exploreSupervision visits every reachable world breadth first, so that a counterexample is a shortest one. Then it
// checks of each world whether what must run can come up when no more faults happen.
func exploreSupervision(c modelConfig) modelResult {
	m := newSupervisionModel(c)
	e := &supervisionExplorer{supervisionModel: m, seen: map[modelPrint]int32{}}
	e.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	start := e.initial()
	e.normalise(&start)
	e.visit(&start, -1, 0)
	level, depth, number := []world{start}, 0, int32(0)
	for len(level) > 0 {
		var next []world
		for i := range level {
			for j, s := range e.expand(&level[i]) {
				if s.bad != "" {
					return modelResult{states: len(e.parent), depth: depth + 1, bad: s.bad,
						trace: append(e.trace(number), s.String())}
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

	r := modelResult{states: len(e.parent), depth: depth}
	if stuck := e.stuck(); stuck >= 0 {
		r.bad, r.trace = badDown, e.trace(stuck)
	}
	return r
}

// modelPrint stands for a world among those visited. 128 bits leave about one chance in 10^24 that two of ten million
// worlds share one.
type modelPrint [2]uint64

type supervisionExplorer struct {
	*supervisionModel
	seeds   [2]maphash.Seed
	seen    map[modelPrint]int32
	parent  []int32 // by number of world
	choice  []uint16
	goal    []bool
	helpful []int32  // helpful successors of all worlds one after the other
	ends    []uint32 // where those of each world end
}

// visit numbers a world and reports whether it is new.
func (e *supervisionExplorer) visit(w *world, parent int32, choice int) (int32, bool) {
	f := modelPrint{maphash.Comparable(e.seeds[0], *w), maphash.Comparable(e.seeds[1], *w)}
	if n, ok := e.seen[f]; ok {
		return n, false
	}
	n := int32(len(e.parent))
	e.seen[f] = n
	e.parent = append(e.parent, parent)
	e.choice = append(e.choice, uint16(choice))
	e.goal = append(e.goal, e.fulfilled(w))
	return n, true
}

// stuck finds the first world from which no run of helpful steps leads to the goal. It returns -1 if there is none.
func (e *supervisionExplorer) stuck() int32 {
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
	return int32(slices.Index(good, false))
}

// trace walks from the start to a world again, for its steps.
func (e *supervisionExplorer) trace(n int32) []string {
	var choices []uint16
	for ; e.parent[n] >= 0; n = e.parent[n] {
		choices = append(choices, e.choice[n])
	}
	w := e.initial()
	e.normalise(&w)
	var verbs []string
	for _, c := range slices.Backward(choices) {
		s := e.expand(&w)[c]
		verbs = append(verbs, s.String())
		w = s.next
	}
	return verbs
}
