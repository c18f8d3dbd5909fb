package nats

import (
	"slices"
	"time"
)

const (
	// A cloneCheck remembers this many earlier runs.
	maxRuns = 8

	// More reconnects than this in a minute, while the old connection is still open, mean that two copies of the
	// agent are running: a machine was copied while its agent ran.
	maxReplaced    = 30
	replacedWindow = time.Minute
)

// cloneCheck detects that two copies of an agent use the same certificate. There is one for each agent that has
// connected with a certificate.
type cloneCheck struct {
	conn     uint64      // the broker's number of the current connection; 0: none
	run      string      // the current run of the agent's program
	past     []string    // earlier runs
	replaced []time.Time // when a connection of the same run replaced one that was still open
}

// connected records a new connection and reports whether it proves a clone. Each run of an agent has a random number.
// A run ends before the next one starts, so a run that comes back after another one means that two are running.
// open: the previous connection is still open.
func (c *cloneCheck) connected(run string, open bool, now time.Time) (clone bool) {
	switch {
	case c.run == "":
		c.run = run

	case run != c.run:
		if slices.Contains(c.past, run) {
			return true
		}
		c.past = append(c.past, c.run)
		if len(c.past) > maxRuns {
			c.past = slices.Delete(c.past, 0, 1)
		}
		c.run, c.replaced = run, nil

	case open:
		expired := func(t time.Time) bool { return now.Sub(t) > replacedWindow }
		c.replaced = slices.DeleteFunc(append(c.replaced, now), expired)
		return len(c.replaced) > maxReplaced
	}
	return false
}
