package agent

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/journal"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Decode reads one record body, applies it to an empty state and returns what a compaction would write.
func Decode(t journal.Type, body []byte) ([]journal.Entry, error) {
	e, err := decodeEntry(t, body)
	if err != nil {
		return nil, err
	}
	s := newState()
	s.apply(t, e, 1)
	return s.snapshot(true), nil
}

// Note is how the supervisor reports an event.
func (a *Agent) Note(e gozzard.Event) { a.addEvent(e) }

// Groups are the present resource pools.
func (a *Agent) Groups() []gozzard.Group {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.groups
}

// Events are the events in the log.
func (a *Agent) Events() []gozzard.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []gozzard.Event
	for e := range a.state.events.kept() {
		out = append(out, *e)
	}
	return out
}

// KeepMeasured hands over a pass of measurements that comes late.
func (a *Agent) KeepMeasured(list []supervise.Measurement) { a.keepMeasured(list) }
