package fleet

import (
	"time"

	"github.com/gozzard/gozzard"
)

// Vitals is how the machine of a host is, as its last heartbeat of this session said.
type Vitals struct {
	Known   bool          // false: the agent is of an earlier version, or has not sent a heartbeat yet
	Skew    time.Duration // how far the clock of the host is ahead of the server's
	Load    int64         // average of the last minute over the whole machine, in thousandths; or gozzard.NotMeasured
	MemFree int64         // in bytes; or gozzard.NotMeasured
}

// clockSamples is how many heartbeats the skew of a clock is taken from.
const clockSamples = 4

// clock has the last samples of a skew. A heartbeat that waits somewhere makes a clock look behind, and nothing makes it
// look ahead. So the largest sample is the nearest.
type clock struct {
	samples [clockSamples]time.Duration
	n       int // samples so far
}

func (c *clock) add(sample time.Duration) (nearest time.Duration) {
	c.samples[c.n%clockSamples] = sample
	c.n++

	nearest = c.samples[0]
	for _, s := range c.samples[1:min(c.n, clockSamples)] {
		nearest = max(nearest, s)
	}
	return nearest
}

// SetVitals records the vitals of a host. v.Skew is one sample. It ignores an unknown host.
func (x *Index) SetVitals(agent gozzard.AgentID, v Vitals) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.knownHost(agent); e != nil {
		v.Known, v.Skew = true, e.clock.add(v.Skew)
		e.Vitals = v
	}
}
