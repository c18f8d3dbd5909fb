package mako

import (
	"fmt"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// TestFoundBounds: a tree keeps a bounded number of results, items and characters, whatever templates ask.
func TestFoundBounds(t *testing.T) {
	tree := &Element{Tag: "Application"}
	many := results(tree)
	for i := range 2 * maxFound {
		many.put(foundKey{tree, fmt.Sprint(i)}, &result{value: starlark.True})
	}
	if len(many.by) != maxFound || many.get(foundKey{tree, "0"}) == nil {
		t.Errorf("%d results kept, want the first %d", len(many.by), maxFound)
	}

	for what, r := range map[string]*result{
		"items":      {items: make([]Value, maxFoundItems/10)},
		"characters": {value: starlark.String(strings.Repeat("x", maxFoundItems/10*16))},
	} {
		large := results(&Element{Tag: "Application"})
		for i := range 20 {
			large.put(foundKey{nil, fmt.Sprint(i)}, r)
		}
		if len(large.by) != 10 {
			t.Errorf("%d results with many %s kept, want 10", len(large.by), what)
		}
	}
}
