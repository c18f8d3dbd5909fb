package nats

import (
	"slices"
	"time"
)

const (
	maxRuns = 8

	// So often may one run of an agent take the place of a connection that still lives, before it must be two: a
	// machine that was copied while it ran.
	maxTaken  = 30
	takenTime = time.Minute
)

// guest is an agent that has connected with a certificate.
type guest struct {
	conn  uint64 // the broker's number of its connection; 0 none
	run   string // of the agent's program, newest
	past  []string
	taken []time.Time // when a living connection of the same run was replaced
}

// arrive notes a new connection and reports whether it proves a clone. Each run of an agent has a number of its
// own, and a run that was followed by another one has ended: when it comes back, two are running. live says that
// the connection before is still open.
func (g *guest) arrive(run string, live bool, now time.Time) (clone bool) {
	switch {
	case g.run == "":
		g.run = run
	case run != g.run:
		if slices.Contains(g.past, run) {
			return true
		}
		g.past = append(g.past, g.run)
		if len(g.past) > maxRuns {
			g.past = slices.Delete(g.past, 0, 1)
		}
		g.run, g.taken = run, nil
	case live:
		g.taken = slices.DeleteFunc(append(g.taken, now), func(t time.Time) bool { return now.Sub(t) > takenTime })
		return len(g.taken) > maxTaken
	}
	return false
}
