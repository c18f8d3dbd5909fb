//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

// The parts that are measured as separate processes are this program, also when it is a test.
func TestMain(m *testing.M) {
	if served, code := serveRole(os.Args[1:]); served {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works.
func TestQuickRun(t *testing.T) {
	o := options{ways: []string{wayPlain, wayTLS}, binary: os.Getenv("GOZZARD_BINARY"), profiles: t.TempDir(),
		progress: t.Output()}
	o.quick()
	res, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	text := res.Text()
	for _, want := range []string{"Server CPU at rest", "Memory of the server", "From kill -9", "20 agents, plain",
		"20 agents, tls", "Profile: rest"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q", want)
		}
	}
}
