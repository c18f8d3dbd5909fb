package delivery

import (
	"slices"
	"testing"
)

// TD2: an app that floods the server with tasks delays itself, not other apps.
func TestTD2AppsTakeTurns(t *testing.T) {
	var q fairQueue
	add := func(app string, n int) {
		for range n {
			q.add(&task{app: app})
		}
	}

	next := func(n int) (apps []string) {
		for range n {
			apps = append(apps, q.next().app)
		}
		return apps
	}

	add("flood", 1000)
	add("a", 2)
	add("b", 1)

	if got := next(6); !slices.Equal(got, []string{"flood", "a", "b", "flood", "a", "flood"}) {
		t.Fatalf("%q", got)
	}

	add("late", 1) // behind one turn of the flood, not behind 997

	if got := next(2); !slices.Equal(got, []string{"flood", "late"}) {
		t.Fatalf("%q", got)
	}
	if got := next(996); slices.ContainsFunc(got, func(app string) bool { return app != "flood" }) {
		t.Fatalf("%q", got)
	}
	if left := q.next(); left != nil || len(q.apps) != 0 {
		t.Fatalf("%v, %d apps", left, len(q.apps))
	}
}

// The tasks of one app are in order, and a task that is queued again is behind the others.
func TestTasksOfAnAppTakeTurns(t *testing.T) {
	var q fairQueue
	one, two := &task{app: "a"}, &task{app: "a"}
	q.add(one)
	q.add(two)
	if q.next() != one {
		t.Fatal("not in order")
	}
	q.add(one)
	if q.next() != two || q.next() != one || q.next() != nil {
		t.Fatal("not in turn")
	}
}
