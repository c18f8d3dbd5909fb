package turns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/turns"
)

// TD2: an owner that floods the queue delays itself, not the others.
func TestTD2OwnersTakeTurns(t *testing.T) {
	var q turns.Queue[string]
	add := func(name string, n int) {
		for range n {
			q.Add(name, name)
		}
	}
	next := func(n int) (names []string) {
		for range n {
			name, _ := q.Next()
			names = append(names, name)
		}
		return names
	}

	add("flood", 1000)
	add("a", 2)
	add("b", 1)
	if first, ok := q.Peek(); !ok || first != "flood" || q.Len() != 1003 || q.Owners() != 3 {
		t.Fatalf("%q, %d things of %d owners", first, q.Len(), q.Owners())
	}
	if got := next(6); !slices.Equal(got, []string{"flood", "a", "b", "flood", "a", "flood"}) {
		t.Fatalf("%q", got)
	}

	add("late", 1) // behind one turn of the flood, not behind 997
	if got := next(2); !slices.Equal(got, []string{"flood", "late"}) {
		t.Fatalf("%q", got)
	}
	if got := next(996); slices.ContainsFunc(got, func(name string) bool { return name != "flood" }) {
		t.Fatalf("%q", got)
	}
	if left, ok := q.Next(); ok || q.Len() != 0 || q.Owners() != 0 {
		t.Fatalf("%v, %d things of %d owners", left, q.Len(), q.Owners())
	}
	if _, ok := q.Peek(); ok {
		t.Fatal("an empty queue has something")
	}
}

// The things of one owner are in order, and one that is queued again is behind the others.
func TestThingsOfAnOwnerAreInOrder(t *testing.T) {
	var q turns.Queue[int]
	q.Add("a", 1)
	q.Add("a", 2)
	if got, _ := q.Next(); got != 1 {
		t.Fatalf("first %d", got)
	}
	q.Add("a", 1)
	for _, want := range []int{2, 1, 0} {
		if got, _ := q.Next(); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	}
}

// Owners that may not have a turn keep their places, and the one that had a turn is behind them.
func TestPick(t *testing.T) {
	var q turns.Queue[string]
	for _, name := range []string{"large-a", "large-b", "small-a", "small-b", "small-a"} {
		q.Add(name, name)
	}
	small := func(name string) bool { return strings.HasPrefix(name, "small") }
	for _, want := range []string{"small-a", "small-b", "small-a", ""} {
		if got, ok := q.Pick(small); got != want || ok != (want != "") {
			t.Fatalf("%q %v, want %q", got, ok, want)
		}
	}
	for _, want := range []string{"large-a", "large-b"} {
		if got, _ := q.Next(); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
