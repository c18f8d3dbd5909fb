package control

import (
	"math/rand/v2"
	"time"
)

// Heartbeats come in groups: a message that arrives alone wakes threads and costs several times as much as one of many
// that arrive together. So the answer to a heartbeat names the time of the next one, and these times are beatGrid apart.
const (
	beatGrid = 250 * time.Millisecond

	// beatPeriod is at most between two heartbeats. Agents send the next one after 10 s in any case.
	beatPeriod = 9900 * time.Millisecond

	// beatMix is how many times of the grid are left to chance, so that hosts that came together do not stay together.
	beatMix = 4
)

// nextBeat is how long after now an agent shall send its next heartbeat.
func nextBeat(now time.Time) time.Duration {
	at := now.Add(beatPeriod).Truncate(beatGrid)
	return at.Add(-rand.N(time.Duration(beatMix)) * beatGrid).Sub(now)
}
