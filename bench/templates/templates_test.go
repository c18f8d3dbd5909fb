//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/topology"
)

// TestRender renders the templates of the benchmark without Mako: they have what the benchmark says.
func TestRender(t *testing.T) {
	s := quickSize()
	b := business(s)
	if faults := b.Check(); len(faults) > 0 {
		t.Fatal(faults)
	}
	tree, all := b.Tree(topology.EnvFormal), spots(b)
	if len(all) != s.sets*s.modules*s.hosts {
		t.Errorf("there are %d processes", len(all))
	}

	var sums []string
	for _, c := range templates(s) {
		_, sum, bytes, err := render(t.Context(), tree, all, c.text, time.Now())
		if err != nil || bytes < len(all)*s.text/2 {
			t.Errorf("%s: %d bytes, %v", c.what, bytes, err)
		}
		sums = append(sums, sum)
	}
	if sums[0] == sums[1] {
		t.Error("both templates give the same text")
	}

	var xml strings.Builder
	xmlOf(&xml, tree.Context(all[0], 1, 1, time.Now()).Tree)
	if n := strings.Count(xml.String(), "<Host "); n != len(all) {
		t.Errorf("the tree has %d hosts", n)
	}
}
