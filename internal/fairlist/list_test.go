package fairlist_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gozzard/gozzard/internal/fairlist"
)

type thing struct {
	num   uint64
	owner string
}

// model does slowly what the list must do.
type model struct {
	most   int
	things []thing
}

func (m *model) add(x thing) (dropped []thing) {
	m.things = append(m.things, x)
	if len(m.things) <= m.most {
		return nil
	}

	count := map[string]int{}
	for _, y := range m.things {
		count[y.owner]++
	}
	top := slices.MaxFunc(m.things, func(a, b thing) int { return cmp.Compare(count[a.owner], count[b.owner]) })
	for _, y := range m.things { // of owners with the same number any may be chosen
		if count[y.owner] == count[top.owner] && !slices.ContainsFunc(dropped, func(d thing) bool { return d.owner == y.owner }) {
			dropped = append(dropped, y)
		}
	}
	return dropped
}

func (m *model) remove(num uint64) {
	m.things = slices.DeleteFunc(m.things, func(x thing) bool { return x.num == num })
}

// TestListDropsTheOldestOfTheLargestOwner compares the list with the model over random steps.
func TestListDropsTheOldestOfTheLargestOwner(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := &model{most: 1 + rnd.IntN(12)}
		l := fairlist.New[thing](m.most)
		num := uint64(0)

		for range 300 {
			if rnd.IntN(8) == 0 && len(m.things) > 0 { // what is old leaves
				upTo := m.things[0].num + uint64(rnd.IntN(2))
				for x, ok := l.TakeOldest(upTo); ok; x, ok = l.TakeOldest(upTo) {
					m.remove(x.num)
				}
				if len(m.things) > 0 && m.things[0].num <= upTo {
					t.Fatalf("seed %d: %d was not taken", seed, m.things[0].num)
				}
			}

			num += 1 + uint64(rnd.IntN(3))
			x := thing{num, fmt.Sprint(rnd.IntN(1 + rnd.IntN(6)))}
			may := m.add(x)
			gone, dropped := l.Add(x.owner, x.num, x)
			if dropped != (len(may) > 0) || dropped && !slices.ContainsFunc(may, func(d thing) bool { return d.num == gone }) {
				t.Fatalf("seed %d: %d was dropped (%v), permitted are %v", seed, gone, dropped, may)
			}
			m.remove(gone)
			compare(t, seed, l, m.things)
		}
	}
}

func compare(t *testing.T, seed uint64, l *fairlist.List[thing], want []thing) {
	t.Helper()
	var all, back, after []thing
	for x := range l.All() {
		all = append(all, *x)
	}
	for x := range l.Backward() {
		back = append(back, *x)
	}
	slices.Reverse(back)

	at := len(want) / 2
	if len(want) > 0 {
		for x := range l.After(want[at].num) {
			after = append(after, *x)
		}
		if !slices.Equal(after, want[at+1:]) || l.Last() != want[len(want)-1].num {
			t.Fatalf("seed %d: behind %d: %v of %v", seed, want[at].num, after, want)
		}
	}
	if !slices.Equal(all, want) || !slices.Equal(back, want) || l.Len() != len(want) {
		t.Fatalf("seed %d: %v, backward %v, %d things; want %v", seed, all, back, l.Len(), want)
	}
}
