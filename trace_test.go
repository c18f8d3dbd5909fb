package gozzard_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

// A trace is taken apart, and nothing but a trace id is ever shown as one.
func TestTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct{ trace, parent, state, id string }{
		{"", "", "", ""},
		{parent, parent, "", "0af7651916cd43dd8448eb211c80319c"},
		{parent + " a=1,b=2", parent, "a=1,b=2", "0af7651916cd43dd8448eb211c80319c"},
		{"00-short", "00-short", "", ""},
		{strings.Repeat("x", 55), strings.Repeat("x", 55), "", ""},
		{"00-\n" + parent[4:], "00-\n" + parent[4:], "", ""},
		{"00-" + strings.ToUpper(parent[3:35]) + parent[35:], "00-" + strings.ToUpper(parent[3:35]) + parent[35:], "", ""},
	} {
		tr := gozzard.Trace(c.trace)
		if tr.Parent() != c.parent || tr.State() != c.state || tr.ID() != c.id {
			t.Errorf("%q has parent %q, state %q, id %q", c.trace, tr.Parent(), tr.State(), tr.ID())
		}
	}

	if got := gozzard.TraceOf(gozzard.WithTrace(t.Context(), parent)); got != parent {
		t.Errorf("a context has the trace %q", got)
	}
}
