package supervise

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// Life is the status of a process for a reader on the same host. It has more than what is sent to the server.
type Life struct {
	gozzard.Status
	Since int64 // Unix seconds: when it started, or was first seen not running; 0 before the first look

	Measured bool  // Usage is of the process that runs now
	Usage    Usage // as of the last sample
	// Exceeded counts how often the process was over a limit in as many samples as its definition allows, since the agent
	// started.
	Exceeded uint32
}

// Lives returns the first processes in the order of their keys, at most the given number, and how many there are in
// total. It never waits for a process or a command. The labels are shared; the caller must not change them.
func (s *Supervisor) Lives(most int) (lives []Life, total int) {
	now := s.now()
	for _, a := range s.all() {
		v := a.snapshot()
		if !v.managed {
			continue
		}
		l := Life{Status: v.report(now), Exceeded: a.exceeded.Load()}
		if v.sampled && !v.proc.IsZero() && v.usage.Procs > 0 {
			l.Measured, l.Usage = true, v.usage
		}
		if !v.since.IsZero() {
			l.Since = v.since.Unix()
		}
		lives = append(lives, l)
	}

	slices.SortFunc(lives, func(x, y Life) int { return x.Key.Compare(y.Key) })
	return lives[:min(len(lives), max(most, 0))], len(lives)
}
