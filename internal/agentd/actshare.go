package agentd

import (
	"time"

	"github.com/gozzard/gozzard"
)

const (
	// Each namespace has a share of the act log, so that one tenant of a host cannot remove the rows of the others. All
	// shares together fill less than one of the two halves of the file at once.
	actsShare      = 448 << 10 // bytes at once
	actsRefill     = 64 << 10  // bytes a minute after that
	actsNamespaces = 64        // with a share of their own; all others have one together

	actsOthers = "*" // the name of that one
	actsSweep  = time.Minute
)

// actShares are the shares of the namespaces. What exceeds a share is counted.
type actShares struct {
	all   map[string]*actShare
	swept time.Time
}

// actShare is the share of one namespace.
type actShare struct {
	left   float64
	at     time.Time // when left was right
	folded foldLine  // what was not written since the last row; Received and Ran are 0 for nothing
}

// foldLine is a row that stands for several: they exceeded the share of their namespace.
type foldLine struct {
	At        time.Time       `json:"at"`
	Kind      string          `json:"kind"` // "folded"
	Namespace string          `json:"namespace"`
	Since     time.Time       `json:"since"`
	Received  int             `json:"received"` // operations in commands
	Ran       int             `json:"ran"`      // outcomes
	FirstTask gozzard.TaskSeq `json:"first_task"`
	LastTask  gozzard.TaskSeq `json:"last_task"`
}

// of is the share of a namespace.
func (s *actShares) of(namespace string, now time.Time) *actShare {
	if a := s.all[namespace]; a != nil {
		a.refill(now)
		return a
	}

	if s.all == nil {
		s.all = map[string]*actShare{}
	}
	if len(s.all) >= actsNamespaces {
		s.forget(now)
	}
	if len(s.all) >= actsNamespaces && namespace != actsOthers {
		return s.of(actsOthers, now)
	}

	a := &actShare{left: actsShare, at: now, folded: foldLine{Kind: "folded", Namespace: namespace}}
	s.all[namespace] = a
	return a
}

// forget removes shares that nothing was taken from for a while: they are like new ones.
func (s *actShares) forget(now time.Time) {
	for name, a := range s.all {
		if a.refill(now); a.left >= actsShare && !a.folded.any() {
			delete(s.all, name)
		}
	}
}

// due lists the shares whose counted rows have waited for a while.
func (s *actShares) due(now time.Time, wait time.Duration) (list []*actShare) {
	if wait > 0 && now.Sub(s.swept) < actsSweep {
		return nil
	}
	s.swept = now
	for _, a := range s.all {
		if a.folded.any() && now.Sub(a.folded.Since) >= wait {
			list = append(list, a)
		}
	}
	return list
}

func (a *actShare) refill(now time.Time) {
	if passed := now.Sub(a.at); passed > 0 {
		a.left = min(actsShare, a.left+passed.Minutes()*actsRefill)
	}
	a.at = now
}

// take takes bytes from the share and reports whether there were enough.
func (a *actShare) take(bytes int) bool {
	if a.left < float64(bytes) {
		return false
	}
	a.left -= float64(bytes)
	return true
}

// fold counts a row instead of writing it.
func (a *actShare) fold(task gozzard.TaskSeq, received, ran int, now time.Time) {
	f := &a.folded
	if !f.any() {
		f.Since, f.FirstTask = now.UTC(), task
	}
	f.Received, f.Ran, f.LastTask = f.Received+received, f.Ran+ran, task
}

func (f *foldLine) any() bool { return f.Received+f.Ran > 0 }
