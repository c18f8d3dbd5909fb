package supervise

import (
	"slices"

	"github.com/gozzard/gozzard"
)

// Life is a process as somebody on its host sees it: more than what crosses the network.
type Life struct {
	gozzard.Status
	Since    int64 // Unix seconds: when it came to run, or was first seen not to; 0 when nobody has looked yet
	Restarts int   // that nobody asked for, since the supervisor began
}

// Lives tells of the first processes by key, at most so many, and how many there are. It waits for nothing that a
// process or its commands do. The labels are shared and must not be changed.
func (s *Supervisor) Lives(most int) (lives []Life, total int) {
	now := s.now()
	for _, a := range s.all() {
		v := a.snapshot()
		if !v.known {
			continue
		}
		l := Life{Status: v.report(now), Restarts: v.restarts}
		if !v.since.IsZero() {
			l.Since = v.since.Unix()
		}
		lives = append(lives, l)
	}

	slices.SortFunc(lives, func(x, y Life) int { return x.Key.Compare(y.Key) })
	return lives[:min(len(lives), max(most, 0))], len(lives)
}
