package control

import (
	"slices"
	"sync"
	"time"

	"github.com/gozzard/gozzard"
)

const (
	// copies remembers this many earlier runs of an agent.
	maxPastRuns = 4

	// Earlier runs that come back this often, within this time, mean that copies of the agent are running. Fewer could come
	// from a state folder that was set back, or could not be written.
	maxReturns    = 3
	returnsWithin = 10 * time.Minute
)

// copies detects that two copies of an agent run at different servers. Commands reach both, so when a server asks for a new
// session, both say HELLO with the same number, and one of them is too late: then the server asks again. Copies at the same
// server are found by its broker, before they say anything.
type copies struct {
	mu   sync.Mutex
	runs map[gozzard.AgentID]runs
}

// runs are those that said HELLO for the newest session of an agent, to any server.
type runs struct {
	present uint64
	past    [maxPastRuns]uint64
	returns int       // of past runs
	since   time.Time // the first of them
}

// said notes that a run of an agent said HELLO with a number that no other one had before, and reports whether this proves a
// copy. Each run has a random number, and writes the number of its session to disk before it says HELLO. A run ends before the
// next one starts, so a past one cannot have the newest number.
func (c *copies) said(agent gozzard.AgentID, run uint64, now time.Time) (copied bool) {
	if run == 0 { // a server of an earlier version does not send it
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	r := c.runs[agent]
	if run == r.present {
		return false
	}
	if slices.Contains(r.past[:], run) {
		if r.returns == 0 || now.Sub(r.since) > returnsWithin {
			r.returns, r.since = 0, now
		}
		r.returns++
	}
	if r.returns >= maxReturns {
		delete(c.runs, agent)
		return true
	}

	if r.present != 0 {
		copy(r.past[1:], r.past[:])
		r.past[0] = r.present
	}
	r.present = run
	if c.runs == nil {
		c.runs = map[gozzard.AgentID]runs{}
	}
	c.runs[agent] = r
	return false
}

// forget makes an agent start anew, because its connections were closed: a person decides which of the copies goes on.
func (c *copies) forget(agent gozzard.AgentID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, agent)
}

// noteRun reports an agent of which copies run at several servers.
func (p *Plane) noteRun(agent gozzard.AgentID, cloud int, run uint64) {
	if p.copies.said(agent, run, p.o.Now()) && p.o.Observe.Copied != nil {
		p.o.Observe.Copied(agent, cloud)
	}
}
