package storetest

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
)

// eventCauses reads the attempts that events name, and only those.
func eventCauses(t *testing.T, s control.Store) {
	n := newTask(attempts(300))
	acc, err := s.Accept(t.Context(), n)
	must(t, err)

	var refs []gozzard.AttemptRef
	for i := range n.Attempts {
		refs = append(refs, n.Attempts[i].Ref)
	}
	missing := gozzard.AttemptRef{Task: acc.Task.Seq + 1}
	got, err := s.EventCauses(t.Context(), append(refs, missing, gozzard.AttemptRef{Task: acc.Task.Seq, Index: 1 << 20}))
	must(t, err)
	equal(t, "causes", len(got), len(refs))
	for i := range n.Attempts {
		a, c := &n.Attempts[i], got[refs[i]]
		if c.Op != a.Op || c.Agent != a.Agent || c.Key != a.Key || c.Task != acc.Task.ID || c.App != acc.Task.Caller.App ||
			c.User != acc.Task.Caller.User {
			t.Fatalf("the cause of %v is %+v", refs[i], c)
		}
	}

	none, err := s.EventCauses(t.Context(), nil)
	must(t, err)
	equal(t, "causes of nothing", len(none), 0)
}
