//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
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
	o := options{ways: []string{wayPlain, wayTLS}, sizes: []int{20}, processes: 3, rest: time.Second, progress: t.Output()}
	res, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	text := res.Text()
	for _, want := range []string{"Server CPU at rest", "Memory of the server", "One task on all hosts", "60 targets", "20 KB on 20 hosts", "1024 KB on 20 hosts", "From kill -9", "20 agents, plain",
		"20 agents, tls", "What holds memory", "permissions of each connection", "20 agents, tls, tasks", "20 agents, tls, return"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q", want)
		}
	}
}

// TestQuickGrowth checks that every measurement of growth works.
func TestQuickGrowth(t *testing.T) {
	o := options{growth: &growthSize{}, progress: t.Output()}
	o.quick()
	res, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}

	text := res.Text()
	for _, want := range []string{"2 processes, 40 in all", "40 targets", "1000 attempts", "start of the server"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q:\n%s", want, text)
		}
	}
}

func TestMissedGoals(t *testing.T) {
	r := newResults(options{})
	m := &measured{way: wayTLS, agents: goalAgents, back: 31 * time.Second, fan: fanned{targets: goalAgents, whole: 3 * time.Second},
		ours: cost{full: 50 * 1024 * goalAgents, cpu: 120 * time.Millisecond}}
	held := crowd.Holders{"stacks": 1 << 20}
	r.addMissed(m, profile.Costs{}, profile.Costs{}, profile.Costs{}, held)
	if len(r.Missed()) != 4 {
		t.Errorf("missed %q", r.Missed())
	}

	m.back, m.fan, m.ours = 29*time.Second, fanned{}, cost{full: 40 * 1024 * goalAgents, cpu: 90 * time.Millisecond}
	r = newResults(options{})
	r.addMissed(m, profile.Costs{}, profile.Costs{}, profile.Costs{}, held)
	if len(r.Missed()) > 0 {
		t.Errorf("missed %q, and all goals are reached", r.Missed())
	}
}
