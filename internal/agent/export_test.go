package agent

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
)

// Decode reads one record body and, if it is good, applies it to an empty state and gives back what a compaction
// would write.
func Decode(t journal.Type, body []byte) ([]journal.Entry, error) {
	e, err := decodeEntry(t, body)
	if err != nil {
		return nil, err
	}
	s := newState()
	s.apply(t, e, 1)
	return s.snapshot(), nil
}

// Note is how the supervisor tells an event.
func (a *Agent) Note(e gozzard.Event) { a.note(e) }

// Groups are the pools in force.
func (a *Agent) Groups() []gozzard.Group {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.groups
}

// Events are those kept.
func (a *Agent) Events() []gozzard.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.events.kept
}
