//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/test/pgtest"
)

// The parts that are measured as separate processes are this program, also when it is a test.
func TestMain(m *testing.M) {
	if played, code := crowd.Play("scale", os.Args[1:], play); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestQuickRun does not look at figures, because the machine is busy. It checks that every measurement works.
func TestQuickRun(t *testing.T) {
	if !pgtest.Available() {
		t.Skip("not run: there is no PostgreSQL on this machine")
	}
	o := options{agents: 24, processes: 2, rest: time.Second, settle: time.Second, rounds: 1, looks: 1, progress: t.Output()}
	res, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Fault(); err != nil {
		t.Error(err)
	}

	text := res.Text()
	for _, want := range []string{"24 agents over TLS at 3 servers", "for each agent, in all", "One operation on each of 24 hosts", "A task with 48 targets",
		"Pages of 100 rows, of 48 processes", "set-3.*.*.process-00.*`: 3 rows match", "kill -9 of one of 3 servers, with 24 agents", "processes of 6 lost hosts",
		"What holds the memory", "at rest", "until it was accepted", "after the kill of another server"} {
		if !strings.Contains(text, want) {
			t.Errorf("the results do not have %q:\n%s", want, text)
		}
	}
}

func TestMissedGoals(t *testing.T) {
	b := &bench{options: options{agents: goalAgents, processes: 20, rounds: 3}}
	b.m = measured{empty: 0, full: 50 * 1024 * goalAgents, fan: fanned{read: 11 * time.Second}, accept: acceptance{ours: 3, bare: 1}, back: 31 * time.Second, noticed: 16 * time.Second}
	missed := func() int {
		r := newResults(&b.options)
		r.addRest(b)
		r.addTasks(b)
		r.addFaults(b)
		return len(r.Missed())
	}
	if n := missed(); n != 5 {
		t.Errorf("%d goals are missed, and all five were", n)
	}
	b.m = measured{full: 44 * 1024 * goalAgents, fan: fanned{read: 9 * time.Second}, accept: acceptance{ours: 2, bare: 1}, back: 29 * time.Second, noticed: 14 * time.Second}
	if n := missed(); n != 0 {
		t.Errorf("%d goals are missed, and none was", n)
	}
}
