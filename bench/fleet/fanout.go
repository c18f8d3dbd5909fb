//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozzard/gozzard/bench/child"
	"github.com/gozzard/gozzard/bench/crowd"
	"github.com/gozzard/gozzard/bench/profile"
)

const (
	fanRounds = 5 // of the small task; the large one is measured once
	fanLarge  = 5 // processes on each host in the large task
)

// fanned is what tasks on all hosts cost.
type fanned struct {
	targets         int
	accepted, whole time.Duration // medians
	cpu             time.Duration // of the server, for each operation
	agents          float64       // share of the simulated hosts in the CPU of both
}

// fanOut measures a task on one process of every host, and one on several processes of every host.
func (b *bench) fanOut(ctx context.Context, s *testServer, m *measured, agents []*child.Process) error {
	if _, err := s.reloadAll(ctx, 1, m.agents); err != nil { // makes what is made once
		return err
	}

	err := b.profile(s.Process, profileName("fanout", m.way, m.agents), func() (err error) {
		m.fan, err = b.fanRounds(ctx, s, m.agents, 1, fanRounds, agents)
		return err
	})
	if err != nil {
		return err
	}
	m.fanLarge, err = b.fanRounds(ctx, s, m.agents, min(fanLarge, b.processes), 1, agents)
	if err != nil {
		return err
	}

	for _, f := range []fanned{m.fan, m.fanLarge} {
		b.say("%s: %d targets accepted after %s, all verdicts read after %s, %s of CPU per operation", m, f.targets,
			f.accepted.Round(time.Millisecond), f.whole.Round(time.Millisecond), f.cpu)
	}
	if err := b.fanFiles(ctx, s, m, agents); err != nil {
		return err
	}
	return b.fanRelease(ctx, s, m, agents)
}

// fanRounds measures some equal tasks.
func (b *bench) fanRounds(ctx context.Context, s *testServer, hosts, names, rounds int, agents []*child.Process) (f fanned, err error) {
	return b.fanTasks(s, names*hosts, rounds, agents, func(int) (time.Duration, error) { return s.reloadAll(ctx, names, hosts) })
}

// fanTasks measures tasks with some targets. task runs one of them and returns when it was accepted.
func (b *bench) fanTasks(s *testServer, targets, rounds int, agents []*child.Process, task func(i int) (time.Duration, error)) (f fanned, err error) {
	var accepted, whole []time.Duration
	before, err := crowd.SpentBy(agents)
	if err != nil {
		return f, err
	}
	cpu, _, err := child.Spent(s.Process, func() error {
		for i := range rounds {
			began := time.Now()
			took, err := task(i)
			if err != nil {
				return err
			}
			accepted, whole = append(accepted, took), append(whole, time.Since(began))
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	after, err := crowd.SpentBy(agents)
	if err != nil {
		return f, err
	}

	slices.Sort(accepted)
	slices.Sort(whole)
	return fanned{targets: targets, accepted: accepted[rounds/2], whole: whole[rounds/2],
		cpu: cpu / time.Duration(rounds*targets), agents: float64(after-before) / float64(after-before+cpu)}, nil
}

// addFan adds the figures of tasks on all hosts.
func (r *results) addFan(m *measured) {
	for _, f := range []fanned{m.fan, m.fanLarge} {
		r.fan.Add(fmt.Sprintf("%s, %d targets", m, f.targets), fmt.Sprintf("%.2f s, accepted after %.2f s", f.whole.Seconds(), f.accepted.Seconds()),
			fmt.Sprintf("%.0f µs; the simulated hosts take %.0f %% of the CPU of both", float64(f.cpu)/1e3, 100*f.agents), "", fanGoal(f.targets))
	}
}

// The goals for tasks with 10,000 and 50,000 targets on 10,000 hosts.
const (
	goalFan      = 2 * time.Second
	goalFanLarge = 10 * time.Second
)

func fanGoal(targets int) string {
	if targets > goalAgents {
		return fmt.Sprintf("< %.0f s for 50000", goalFanLarge.Seconds())
	}
	return fmt.Sprintf("< %.0f s for %d", goalFan.Seconds(), goalAgents)
}

// missedFan says of each goal of the tasks that is missed by how much and why.
func (m *measured) missedFan(c profile.Costs, miss func(string, ...any)) {
	for _, g := range []struct {
		f    fanned
		goal time.Duration
	}{{m.fan, goalFan}, {m.fanLarge, goalFanLarge}} {
		if over := g.f.whole - g.goal; over > 0 {
			miss("all verdicts of %d targets came %.1f s after the goal of %.0f s. Server and simulated hosts share the two cores, and the hosts take "+
				"%.0f %% of what both use. The largest costs of the server are %s.", g.f.targets, over.Seconds(), g.goal.Seconds(), 100*g.f.agents, c.Top(3))
		}
	}
}
