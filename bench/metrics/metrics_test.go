//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard/test/fleettest"
)

func TestMain(m *testing.M) {
	fleettest.AsShipped()
	fleettest.Main(m)
}

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works and
// reports no fault.
func TestQuickRun(t *testing.T) {
	res, err := run(t.Context(), quickSize(), fleettest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}
	text := res.Text()
	for _, want := range []string{"an agent with 20 processes", "median", "compressed", "with scrapes", "of one scrape"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q:\n%s", want, text)
		}
	}
}
