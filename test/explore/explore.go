package explore

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Model is what is explored. A world is one of its states. A is what happens in a step.
type Model[W comparable, A fmt.Stringer] interface {
	Initial() W

	// Expand lists the successors of a world, always in the same order. The slice is used until the next call.
	Expand(*W) []Step[W, A]

	// Done reports whether a world is one that must be reachable from every other one without further faults.
	Done(*W) bool
}

// Step leads to a successor. Helpful steps need no fault. Bad names the promise that the step breaks.
type Step[W comparable, A fmt.Stringer] struct {
	Next    W
	Act     A
	Helpful bool
	Bad     string
}

// Result is the result of an exploration.
type Result struct {
	States, Depth int
	Bad           string   // the promise that is broken, "": none
	Trace         []string // the steps that lead there
}

func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %d steps:", r.Bad, len(r.Trace))
	for i, step := range r.Trace {
		fmt.Fprintf(&b, "\n  %2d. %s", i+1, step)
	}
	return b.String()
}

// fingerprint stands for a world among those visited. 128 bits leave about one chance in 10^24 that two of ten
// million worlds share one.
type fingerprint [2]uint64

type explorer[W comparable, A fmt.Stringer] struct {
	model   Model[W, A]
	seeds   [2]maphash.Seed
	seen    map[fingerprint]int32
	parent  []int32 // by number of world
	choice  []uint16
	goal    []bool
	helpful []int32  // helpful successors of all worlds one after the other
	ends    []uint32 // where those of each world end
}

// All visits every reachable world breadth first, so that a counterexample is a shortest one. Then it checks of each world
// whether helpful steps alone can lead to the goal. If not, the result is bad for the reason that stuck says.
func All[W comparable, A fmt.Stringer](m Model[W, A], stuck string) Result {
	e := &explorer[W, A]{model: m, seen: map[fingerprint]int32{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	start := m.Initial()
	e.visit(&start, -1, 0)

	depth, number := 0, int32(0) // number is that of the world being expanded
	for level := []W{start}; ; depth++ {
		var next []W
		for i := range level {
			bad := e.expand(&level[i], number, &next)
			if bad != nil {
				bad.Depth = depth + 1
				return *bad
			}
			number++
		}
		if level = next; len(level) == 0 {
			break
		}
	}

	r := Result{States: len(e.parent), Depth: depth}
	if n := e.stuck(); n >= 0 {
		r.Bad, r.Trace = stuck, e.trace(n)
	}
	return r
}

// expand visits the successors of a world and adds the new ones to next. It returns a result if one breaks a promise.
func (e *explorer[W, A]) expand(w *W, number int32, next *[]W) *Result {
	steps := e.model.Expand(w)
	for i := range steps {
		s := &steps[i]
		if s.Bad != "" {
			bad, last := s.Bad, s.Act.String() // before the trace expands again
			return &Result{States: len(e.parent), Bad: bad, Trace: append(e.trace(number), last)}
		}

		n, fresh := e.visit(&s.Next, number, i)
		if fresh {
			*next = append(*next, s.Next)
		}
		if s.Helpful {
			e.helpful = append(e.helpful, n)
		}
	}
	e.ends = append(e.ends, uint32(len(e.helpful)))
	return nil
}

// visit numbers a world and reports whether it is new.
func (e *explorer[W, A]) visit(w *W, parent int32, choice int) (int32, bool) {
	f := fingerprint{maphash.Comparable(e.seeds[0], *w), maphash.Comparable(e.seeds[1], *w)}
	if n, ok := e.seen[f]; ok {
		return n, false
	}

	n := int32(len(e.parent))
	e.seen[f] = n
	e.parent = append(e.parent, parent)
	e.choice = append(e.choice, uint16(choice))
	e.goal = append(e.goal, e.model.Done(w))
	return n, true
}

// stuck finds the first world from which no run of helpful steps leads to the goal, -1 when there is none. Later
// worlds tend to be nearer to the goal, so going backwards a few rounds are enough.
func (e *explorer[W, A]) stuck() int32 {
	good := e.goal
	for changed := true; changed; {
		changed = false
		for n := len(good) - 1; n >= 0; n-- {
			if !good[n] && slices.ContainsFunc(e.helpfulOf(n), func(s int32) bool { return good[s] }) {
				good[n], changed = true, true
			}
		}
	}
	return int32(slices.Index(good, false))
}

// helpfulOf lists the helpful successors of a world.
func (e *explorer[W, A]) helpfulOf(n int) []int32 {
	from := uint32(0)
	if n > 0 {
		from = e.ends[n-1]
	}
	return e.helpful[from:e.ends[n]]
}

// trace walks from the start to a world again, for its steps.
func (e *explorer[W, A]) trace(n int32) (steps []string) {
	var choices []uint16
	for ; e.parent[n] >= 0; n = e.parent[n] {
		choices = append(choices, e.choice[n])
	}

	w := e.model.Initial()
	for _, c := range slices.Backward(choices) {
		s := &e.model.Expand(&w)[c]
		steps = append(steps, s.Act.String())
		w = s.Next
	}
	return steps
}
